//! What the counters of a group say together: `metric`. The kinds and rules are those of perf 6.1's `stat`.

use std::ops::Range;

use rperf_count::Role;
use rperf_perfdata::Described;
use rperf_wire::{Attr, AttrFlags};

/// The counters of a recording's groups, sample by sample. Samples must come in order.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    events: Vec<Event>,
    counts: Vec<Count>,
}

/// One value with its meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The value.
    pub value: f64,
    /// How it is shown.
    pub form: Form,
    /// What it counts.
    pub unit: String,
    /// Whether perf begins another line before it: its start stands twice.
    pub is_second: bool,
}

impl Metric {
    /// One that stands on the line of its event.
    fn new(value: f64, form: Form, unit: &str) -> Self {
        Self {
            value,
            form,
            unit: unit.to_owned(),
            is_second: false,
        }
    }
}

/// How a value is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `%7.2f `.
    Ratio,
    /// `%7.2f%%`.
    Percent,
    /// `%8.3f %%`.
    FinePercent,
    /// `%8.3f`.
    Rate,
}

/// One event of the recording.
#[derive(Debug, Clone)]
struct Event {
    kind: Role,
    /// What it does not count; only equal ones are compared.
    excluded: u64,
    leader: usize,
    /// Of a leader, the places of its group; empty for an event alone.
    group: Range<usize>,
    /// Of a leader, samples of its group since the last metrics.
    seen: usize,
    /// Its latest count.
    value: f64,
}

/// Counts of one kind on one CPU since the group began.
#[derive(Debug, Clone)]
struct Count {
    kind: Role,
    cpu: u32,
    excluded: u64,
    mean: f64,
    number: f64,
}

/// What metrics know an event as; nothing in particular where it is of one of several kinds of cores.
fn role(attr: &Attr) -> Role {
    match attr.config >> 32 {
        0 => Role::of(attr),
        _ => Role::Other,
    }
}

impl Metrics {
    /// For the events of a recording. Events that are in no group have none.
    #[must_use]
    pub fn new(recording: Described<'_>) -> Self {
        let excluded = AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_USER
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::EXCLUDE_HOST
            | AttrFlags::EXCLUDE_IDLE;
        let event = |(index, attr): (usize, &Attr)| Event {
            kind: role(attr),
            excluded: (attr.flags & excluded).0,
            leader: index,
            group: 0..0,
            seen: 0,
            value: 0.0,
        };
        let attrs = recording.events.iter().map(|event| &event.attr);
        let mut events: Vec<_> = attrs.enumerate().map(event).collect();
        for group in recording.features.group_desc().unwrap_or_default() {
            let (leader, members) = (group.leader as usize, group.members as usize);
            let places = leader..leader.saturating_add(members).min(events.len());
            for event in events.get_mut(places.clone()).unwrap_or_default() {
                event.leader = leader;
            }
            if let Some(event) = events.get_mut(leader) {
                event.group = places;
            }
        }
        Self {
            events,
            counts: Vec::new(),
        }
    }

    /// Counts a sample of the event at place `event`; calls `shown` for what the counts say, once all of the group are there.
    pub fn add(&mut self, event: usize, period: u64, cpu: u32, mut shown: impl FnMut(Metric)) {
        let Some(leader) = self.events.get(event).map(|event| event.leader) else {
            return;
        };
        let Some(group) = self.events.get_mut(leader) else {
            return;
        };
        group.seen += 1;
        let (is_first, is_last) = (group.seen == 1, group.seen == group.group.len());
        let members = group.group.clone().skip(1);
        if is_last {
            group.seen = 0;
        }
        if is_first {
            self.counts.clear();
        }
        self.count(event, period as f64, cpu);
        if is_last {
            for member in members {
                self.of_member(member, cpu, &mut shown);
            }
        }
    }

    fn count(&mut self, event: usize, value: f64, cpu: u32) {
        let Some(event) = self.events.get_mut(event) else {
            return;
        };
        event.value = value;
        let (kind, excluded) = (event.kind, event.excluded);
        let same =
            |count: &&mut Count| (count.kind, count.cpu, count.excluded) == (kind, cpu, excluded);
        match self.counts.iter_mut().find(same) {
            Some(count) => {
                count.number += 1.0;
                count.mean += (value - count.mean) / count.number;
            }
            None => self.counts.push(Count {
                kind,
                cpu,
                excluded,
                mean: value,
                number: 1.0,
            }),
        }
    }

    /// What an event of the group says together with the others.
    fn of_member(&self, member: usize, cpu: u32, shown: &mut impl FnMut(Metric)) {
        let Some(event) = self.events.get(member) else {
            return;
        };
        let beside = Beside {
            event,
            cpu,
            counts: &self.counts,
        };
        let metric = match event.kind.missed() {
            Some((all, unit)) => beside.missed(all, unit),
            None => beside.metric(),
        };
        metric.map(&mut *shown);
        beside.stalls().map(shown);
    }
}

/// An event with what was counted beside it.
struct Beside<'m> {
    event: &'m Event,
    cpu: u32,
    counts: &'m [Count],
}

impl Beside<'_> {
    /// What events of a kind counted on the same CPU, of the same code.
    fn mean(&self, kind: Role) -> Option<f64> {
        let place = (kind, self.cpu, self.event.excluded);
        let mut counts = self.counts.iter();
        let same = |count: &&Count| (count.kind, count.cpu, count.excluded) == place;
        counts.find(same).map(|count| count.mean)
    }

    /// The event as a part of something, `scale` for all of it.
    fn part(&self, of: f64, scale: f64) -> f64 {
        match of == 0.0 {
            true => 0.0,
            false => self.event.value / of * scale,
        }
    }

    /// What missed, as a part of all.
    fn missed(&self, all: Role, unit: &str) -> Option<Metric> {
        let form = match self.event.kind {
            Role::CacheMisses => Form::FinePercent,
            _ => Form::Percent,
        };
        Some(Metric::new(self.part(self.mean(all)?, 100.0), form, unit))
    }

    fn metric(&self) -> Option<Metric> {
        let cycles = self.mean(Role::Cycles).filter(|cycles| *cycles != 0.0);
        let of_cycles = self.part(cycles.unwrap_or_default(), 100.0);
        match self.event.kind {
            Role::Instructions => {
                let ratio = self.event.value / cycles?;
                Some(Metric::new(ratio, Form::Ratio, "insn per cycle"))
            }
            Role::StalledFrontend => (of_cycles != 0.0)
                .then(|| Metric::new(of_cycles, Form::Percent, "frontend cycles idle")),
            Role::StalledBackend => {
                Some(Metric::new(of_cycles, Form::Percent, "backend cycles idle"))
            }
            // Of clocks perf shows how many CPUs were in use, which takes the time that passed, and a recording has none.
            Role::Clock => None,
            Role::Cycles => {
                let time = self.mean(Role::Clock).filter(|time| *time != 0.0)?;
                Some(Metric::new(self.event.value / time, Form::Rate, "GHz"))
            }
            _ => {
                let (rate, prefix) = scaled(self.part(self.mean(Role::Clock)?, 1e9));
                Some(Metric::new(rate, Form::Rate, &format!("{prefix}/sec")))
            }
        }
    }

    /// The cycles in which nothing came on, for each instruction.
    fn stalls(&self) -> Option<Metric> {
        let instructions = self.event.value;
        if self.event.kind != Role::Instructions || instructions == 0.0 {
            return None;
        }
        let stalled = [Role::StalledFrontend, Role::StalledBackend];
        let [front, back] = stalled.map(|kind| self.mean(kind).unwrap_or_default());
        let stalled = front.max(back);
        (stalled != 0.0).then(|| Metric {
            is_second: true,
            ..Metric::new(
                stalled / instructions,
                Form::Ratio,
                "stalled cycles per insn",
            )
        })
    }
}

/// A rate with the prefix of its unit.
fn scaled(mut rate: f64) -> (f64, &'static str) {
    let mut prefix = "";
    for next in ["K", "M", "G"] {
        if rate > 1000.0 {
            rate /= 1000.0;
            prefix = next;
        }
    }
    (rate, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics of one group of events of these kinds.
    fn group(kinds: &[Role]) -> Metrics {
        let event = |kind: &Role| Event {
            kind: *kind,
            excluded: 0,
            leader: 0,
            group: 0..0,
            seen: 0,
            value: 0.0,
        };
        let mut events: Vec<_> = kinds.iter().map(event).collect();
        events[0].group = 0..kinds.len();
        Metrics {
            events,
            counts: Vec::new(),
        }
    }

    fn shown(metrics: &mut Metrics, samples: &[(usize, u64, u32)]) -> Vec<(f64, String)> {
        let mut found = Vec::new();
        for (event, period, cpu) in samples {
            metrics.add(*event, *period, *cpu, |metric| {
                found.push((metric.value, metric.unit))
            });
        }
        found
    }

    #[test]
    fn once_for_each_round_of_the_group() {
        let mut metrics = group(&[Role::Cycles, Role::Instructions]);
        let rounds = [
            (0, 100, 1),
            (1, 250, 1),
            (0, 100, 1),
            (1, 50, 1),
            (0, 100, 1),
        ];
        let per_cycle = |value: f64| (value, "insn per cycle".to_owned());
        assert_eq!(
            shown(&mut metrics, &rounds),
            [per_cycle(2.5), per_cycle(0.5)]
        );
        // The round that has begun ends here, on another CPU: there are no cycles.
        assert_eq!(shown(&mut metrics, &[(1, 50, 2)]), []);
        assert_eq!(shown(&mut metrics, &[(7, 50, 2)]), []);
    }

    #[test]
    fn rates_by_time() {
        let mut metrics = group(&[Role::Clock, Role::Cycles, Role::Other]);
        let round = [(0, 2_000_000, 0), (1, 5_000_000, 0), (2, 10, 0)];
        assert_eq!(
            shown(&mut metrics, &round),
            [(2.5, "GHz".to_owned()), (5.0, "K/sec".to_owned())]
        );
        assert_eq!(scaled(999.0), (999.0, ""));
        assert_eq!(scaled(2e9), (2.0, "G"));
    }

    #[test]
    fn an_event_alone_says_nothing() {
        let mut metrics = group(&[Role::Cycles, Role::Instructions]);
        metrics.events[0].group = 0..0;
        metrics.events[1].leader = 1;
        let samples = [(0, 100, 0), (1, 100, 0), (1, 100, 0)];
        assert_eq!(shown(&mut metrics, &samples), []);
    }
}
