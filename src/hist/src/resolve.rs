//! From unique raw stacks to stacks of names, on all cores, and on to the finished reports.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rperf_replay::{CommId, DsoId, Order};
use rperf_resolve::{Resolver, SymbolId};
use rperf_symbol::{Origin, SymbolKind};
use rperf_wire::Endian;

use crate::facts::{Facts, Pool};
use crate::fold::{Folded, Samples};
use crate::histogram::Histogram;
use crate::keys::{Subject, Thread};
use crate::lent;
use crate::named::NamedStacks;
use crate::namer::{Namer, Pools};
use crate::names::Names;
use crate::options::{Direction, Options};
use crate::payloads::{PayloadId, PayloadText, Payloads, Texts};
use crate::rows::{self, Event};
use crate::select::Select;
use crate::sites::Sites;
use crate::stacks::Layout;
use crate::values::{self, FieldValues, Value};

/// What is known of a recording's events, for the text of their reports.
#[derive(Clone)]
pub struct Source<'a> {
    /// Byte order of the file.
    pub endian: Endian,
    /// For each event, whether its samples have callchains.
    pub callchains: Vec<bool>,
    /// For each event, whether inlined functions are frames of its callchains.
    pub inlines: Vec<bool>,
    /// The events that reports are made of: one, or those of a group, its leader first.
    pub groups: Vec<Vec<usize>>,
    /// The sockets of its processors, where they are known.
    pub sockets: Vec<i32>,
    /// What its tracepoints tell.
    pub payloads: &'a dyn PayloadText,
}

/// How samples become stacks of names, and these reports: what all workers share.
pub struct Naming<'r, 'w> {
    options: &'r Options,
    source: &'r Source<'r>,
    resolver: &'r Resolver<'w>,
    threads: NonZeroUsize,
    /// Bytes of unique stacks that a worker keeps without names.
    pub(crate) room: usize,
    payloads: Payloads,
    lines: Payloads,
    facts: Pool,
    values: values::Pool,
}

/// Bytes of unique stacks that wait for names, of all workers together.
const ROOM: usize = 64 << 20;
/// The least of one worker.
const LEAST_ROOM: usize = 4 << 20;

impl<'r, 'w> Naming<'r, 'w> {
    /// With nothing named yet. `threads` are those that samples are folded on.
    #[must_use]
    pub fn new(
        options: &'r Options,
        source: &'r Source<'r>,
        resolver: &'r Resolver<'w>,
        threads: NonZeroUsize,
    ) -> Self {
        Self {
            options,
            source,
            resolver,
            threads,
            room: (ROOM / threads).max(LEAST_ROOM),
            payloads: Payloads::default(),
            lines: Payloads::default(),
            facts: Pool::default(),
            values: values::Pool::default(),
        }
    }

    /// Whether call graphs begin with the outermost caller.
    #[must_use]
    pub fn begins_with_callers(&self) -> bool {
        self.options.order == Direction::Caller
    }

    /// A worker's samples: those that `select` chooses, or all.
    #[must_use]
    pub fn samples<'n>(&'n self, select: Option<&'n dyn Select>) -> Samples<'n, 'w> {
        let sites = Sites::new(self.resolver, self.options, &self.lines).choosing(select);
        let pools = Pools {
            payloads: &self.payloads,
            values: &self.values,
            facts: &self.facts,
        };
        let namer = Namer::new(sites, self.options, self.source, pools);
        Samples::new(self.options, namer, select, self.room)
    }

    /// The reports of what was folded, one for each group of the source.
    #[must_use]
    pub fn histograms(self, folded: Folded) -> Vec<Histogram> {
        let (options, source, threads) = (self.options, self.source, self.threads);
        let (layouts, names) = self.layouts(folded);
        let mut events: Vec<Option<Layout>> = layouts.into_iter().map(Some).collect();
        let reports = source.groups.iter().map(|group| {
            let taken = group
                .iter()
                .map(|event| events.get_mut(*event).and_then(Option::take));
            let layouts: Vec<Layout> = taken.map(Option::unwrap_or_default).collect();
            let events = source.events(group, &layouts);
            let options = options.of_event(group.first().copied().unwrap_or_default());
            rows::histogram(&events, &options, &names, threads)
        });
        let mut reports: Vec<Histogram> = reports.collect();
        if options.lent_graphs {
            lent::lend(&mut reports, &source.callchains);
        }
        reports
    }

    /// The unique stacks of what was folded, by event.
    #[must_use]
    pub fn named_stacks(self, folded: Folded) -> Vec<NamedStacks> {
        let (source, world) = (self.source, self.resolver.world());
        let (layouts, names) = self.layouts(folded);
        let callchains = source.callchains.iter().chain(std::iter::repeat(&false));
        let named = layouts
            .iter()
            .zip(callchains)
            .map(|(layout, callchains)| NamedStacks::new(layout, *callchains, world, &names));
        named.collect()
    }

    /// The unique stacks of every event.
    fn layouts(self, folded: Folded) -> (Vec<Layout>, Recording<'r, 'w>) {
        let mut parts: Vec<_> = folded.parts.into_iter().map(Vec::into_iter).collect();
        let mut layouts: Vec<Layout> = self
            .source
            .callchains
            .iter()
            .map(|_| {
                let stacks = parts.iter_mut().filter_map(Iterator::next);
                Layout::new(stacks.collect())
            })
            .collect();
        for (layout, sum) in layouts.iter_mut().zip(folded.filtered) {
            layout.filtered.add(sum);
        }
        let names = Recording {
            resolver: self.resolver,
            payloads: self.payloads.finish(),
            lines: self.lines.finish(),
            facts: self.facts.finish(),
            values: self.values.finish(),
            no_facts: Facts::default(),
            sockets: &self.source.sockets,
            nanoseconds: self.options.nanoseconds,
            shows_places: self.options.places,
        };
        (layouts, names)
    }
}

impl Source<'_> {
    fn events<'l>(&self, group: &[usize], layouts: &'l [Layout]) -> Vec<Event<'l>> {
        let event = |(index, layout): (&usize, &'l Layout)| Event {
            index: *index,
            layout,
            callchains: self.callchains.get(*index) == Some(&true),
        };
        group.iter().zip(layouts).map(event).collect()
    }
}

/// The names of a recording.
pub(crate) struct Recording<'a, 'w> {
    resolver: &'a Resolver<'w>,
    payloads: Texts,
    lines: Texts,
    facts: Vec<Facts>,
    values: Vec<Arc<FieldValues>>,
    /// What is known of other samples.
    no_facts: Facts,
    sockets: &'a [i32],
    nanoseconds: bool,
    shows_places: bool,
}

impl Names for Recording<'_, '_> {
    fn comm(&self, comm: CommId) -> &str {
        self.resolver.world().comm(comm)
    }

    fn last_comm(&self, thread: Thread) -> &str {
        let world = self.resolver.world();
        world.comm(world.comm_last(thread.pid, thread.tid, Order::MAX))
    }

    fn dso(&self, dso: DsoId) -> &str {
        let dso = self.resolver.world().dso(dso);
        match self.shows_places {
            true => &dso.long_name,
            false => &dso.short_name,
        }
    }

    fn shows_places(&self) -> bool {
        self.shows_places
    }

    fn origin(&self, dso: DsoId) -> Option<Origin> {
        self.resolver.origin(dso)
    }

    fn symbol(&self, symbol: SymbolId) -> &str {
        self.resolver.symbol_name(symbol)
    }

    fn is_inlined(&self, symbol: SymbolId) -> bool {
        self.resolver.is_inlined(symbol)
    }

    fn shares_its_place(&self, symbol: SymbolId) -> bool {
        let dso = self.resolver.world().dsos().get(symbol.dso.0 as usize);
        dso.is_some_and(|dso| dso.has_functions)
    }

    fn line(&self, line: PayloadId) -> &str {
        self.lines.get(line)
    }

    fn payload(&self, payload: PayloadId) -> &str {
        self.payloads.get(payload)
    }

    fn payload_rank(&self, payload: PayloadId) -> u32 {
        self.payloads.rank(payload)
    }

    fn field(&self, subject: &Subject<'_>) -> Option<&Value> {
        let values = self.values.get(subject.context.values?.0 as usize)?;
        values.get(subject.field)?.as_ref()
    }

    fn facts(&self, subject: &Subject<'_>) -> &Facts {
        let facts = subject.context.facts;
        let facts = facts.and_then(|facts| self.facts.get(facts.0 as usize));
        facts.unwrap_or(&self.no_facts)
    }

    fn cgroup(&self, id: u64) -> Option<&str> {
        self.resolver.world().cgroup(id)
    }

    fn socket(&self, cpu: u32) -> i32 {
        self.sockets.get(cpu as usize).copied().unwrap_or(-1)
    }

    fn shows_nanoseconds(&self) -> bool {
        self.nanoseconds
    }

    fn is_data(&self, symbol: SymbolId) -> bool {
        let symbol = self.resolver.symbol(symbol);
        symbol.is_some_and(|symbol| symbol.kind == SymbolKind::Variable)
    }

    fn range(&self, symbol: SymbolId) -> (u64, u64) {
        let symbol = self.resolver.symbol(symbol);
        symbol.map_or((0, 0), |symbol| (symbol.start, symbol.end))
    }
}
