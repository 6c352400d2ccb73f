//! Which samples count: the joint between options and histograms.

use rperf_hist::{Choice, Select};
use rperf_lines::Filter;
use rperf_replay::{Sample, World};
use rperf_resolve::{Frame, Resolver};

/// What options ask of samples, as histograms ask for it.
pub(crate) struct Chosen(Filter);

impl Chosen {
    /// `None` where nothing is asked.
    pub(crate) fn new(filter: Filter) -> Option<Self> {
        let asked = [
            filter.intervals.is_some(),
            filter.cpus.is_some(),
            filter.comms.is_some(),
            filter.pids.is_some(),
            filter.tids.is_some(),
            filter.dsos.is_some(),
            filter.symbols.is_some(),
        ];
        asked.contains(&true).then_some(Self(filter))
    }
}

impl Select for Chosen {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice {
        let Self(filter) = self;
        let time = sample.wire.time.unwrap_or_default();
        let in_time = filter
            .intervals
            .as_ref()
            .is_none_or(|all| all.contain(time));
        if !(in_time && is_listed(filter.cpus.as_deref(), sample.cpu)) {
            return Choice::Ignored;
        }
        let name = || world.comm(world.comm_at(sample.pid, sample.tid, sample.order));
        let named = |names: &Vec<String>| {
            let name = name();
            names.iter().any(|wanted| wanted == name)
        };
        let accepted = is_listed(filter.pids.as_deref(), sample.pid)
            && is_listed(filter.tids.as_deref(), sample.tid)
            && filter.comms.as_ref().is_none_or(named);
        if accepted {
            Choice::Counted
        } else {
            Choice::Filtered
        }
    }

    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice {
        match self.0.accepts_frame(frame, resolver) {
            true => Choice::Counted,
            false => Choice::Filtered,
        }
    }
}

fn is_listed(list: Option<&[u32]>, id: u32) -> bool {
    list.is_none_or(|list| list.contains(&id))
}
