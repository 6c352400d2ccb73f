//! The data shared by the workers that resolve stacks, and the reports of the resolved stacks.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rperf_replay::{CommId, DsoId, Order};
use rperf_resolve::{Resolver, SymbolId};
use rperf_symbol::{SymbolKind, SymbolOrigin};
use rperf_wire::Endian;

use crate::fold::{FoldedSamples, SampleFold};
use crate::histogram::Histogram;
use crate::keys::{KeyInput, Thread};
use crate::named_stacks::NamedStacks;
use crate::namer::{FrameNamer, SharedPools};
use crate::names::RecordingNames;
use crate::options::{Direction, HistogramOptions};
use crate::payloads::{PayloadText, PooledTexts, TextId, TextPool};
use crate::properties::{Properties, PropertyPool};
use crate::reference_call_graph;
use crate::rows::{self, EventInput};
use crate::select::SelectSamples;
use crate::sites::SiteBuilder;
use crate::stacks::MergedStacks;
use crate::streams::{self, HotStreams};
use crate::values::{self, FieldValue, FieldValues};

/// Properties of a recording used in reports.
#[derive(Clone)]
pub struct RecordingInfo<'a> {
    /// Byte order of the file.
    pub endian: Endian,
    /// For each event, whether its samples have callchains.
    pub callchains: Vec<bool>,
    /// For each event, whether callchains include inlined functions.
    pub inlines: Vec<bool>,
    /// The events of each report: one event, or the events of a group, its leader first.
    pub groups: Vec<Vec<usize>>,
    /// The socket of each CPU, by CPU number; -1 or missing if unknown.
    pub sockets: Vec<i32>,
    /// Formats tracepoint payloads.
    pub payloads: &'a dyn PayloadText,
}

/// Options and data shared by the workers that resolve stacks.
pub struct NamingContext<'r, 'w> {
    options: &'r HistogramOptions,
    source: &'r RecordingInfo<'r>,
    resolver: &'r Resolver<'w>,
    threads: NonZeroUsize,
    /// Maximum size of unresolved stacks of a worker in bytes.
    pub(crate) max_bytes: usize,
    payloads: TextPool,
    lines: TextPool,
    properties: PropertyPool,
    values: values::ValuePool,
}

/// Maximum size of unresolved stacks of all workers together in bytes, unless [`MIN_STACK_BYTES`] is more per worker.
const MAX_STACK_BYTES: usize = 64 << 20;
/// Minimum of [`NamingContext::max_bytes`].
const MIN_STACK_BYTES: usize = 4 << 20;

impl<'r, 'w> NamingContext<'r, 'w> {
    /// Creates the shared data. `threads` is the number of workers.
    #[must_use]
    pub fn new(
        options: &'r HistogramOptions,
        source: &'r RecordingInfo<'r>,
        resolver: &'r Resolver<'w>,
        threads: NonZeroUsize,
    ) -> Self {
        Self {
            options,
            source,
            resolver,
            threads,
            max_bytes: (MAX_STACK_BYTES / threads).max(MIN_STACK_BYTES),
            payloads: TextPool::default(),
            lines: TextPool::default(),
            properties: PropertyPool::default(),
            values: values::ValuePool::default(),
        }
    }

    /// Whether call graphs start with the outermost caller.
    #[must_use]
    pub fn begins_with_callers(&self) -> bool {
        self.options.direction == Direction::Caller
    }

    /// A worker's fold over the samples that `select` does not ignore.
    #[must_use]
    pub fn sample_fold<'n>(&'n self, select: Option<&'n dyn SelectSamples>) -> SampleFold<'n, 'w> {
        let site_builder = SiteBuilder::new(self.resolver, self.options, &self.lines);
        let site_builder = site_builder.with_select(select);
        let pools = SharedPools {
            payloads: &self.payloads,
            values: &self.values,
            properties: &self.properties,
        };
        let namer = FrameNamer::new(site_builder, self.options, self.source, pools);
        SampleFold::new(self.options, namer, select, self.max_bytes)
    }

    /// The reports of folded samples, one for each of [`RecordingInfo::groups`].
    #[must_use]
    pub fn histograms(self, folded: FoldedSamples) -> Vec<Histogram> {
        let (options, source, threads) = (self.options, self.source, self.threads);
        let (all_merged, names) = self.merged_stacks(folded);
        let mut remaining: Vec<Option<MergedStacks>> = all_merged.into_iter().map(Some).collect();
        let reports = source.groups.iter().map(|group| {
            let taken = group
                .iter()
                .map(|event| remaining.get_mut(*event).and_then(Option::take));
            let of_group: Vec<MergedStacks> = taken.map(Option::unwrap_or_default).collect();
            let events = source.events(group, &of_group);
            let options = options.of_event(group.first().copied().unwrap_or_default());
            rows::histogram(&events, &options, &names, threads)
        });
        let mut reports: Vec<Histogram> = reports.collect();
        if options.reference_call_graphs {
            reference_call_graph::copy_reference_call_graphs(&mut reports, &source.callchains);
        }
        reports
    }

    /// The heaviest streams of folded samples, by event.
    #[must_use]
    pub fn hot_streams(self, folded: FoldedSamples) -> Vec<HotStreams> {
        let (options, threads) = (self.options, self.threads);
        let (all_merged, names) = self.merged_stacks(folded);
        let events = all_merged.iter().enumerate().map(|(index, merged)| {
            let event = EventInput {
                index,
                merged,
                // Not used for streams.
                callchains: true,
            };
            streams::hot_streams(&event, &options.of_event(index), &names, threads)
        });
        events.collect()
    }

    /// The stacks of folded samples, by event.
    #[must_use]
    pub fn named_stacks(self, folded: FoldedSamples) -> Vec<NamedStacks> {
        let (source, world) = (self.source, self.resolver.world());
        let (all_merged, names) = self.merged_stacks(folded);
        let callchains = source.callchains.iter().chain(std::iter::repeat(&false));
        let named = all_merged
            .iter()
            .zip(callchains)
            .map(|(merged, callchains)| NamedStacks::new(merged, *callchains, world, &names));
        named.collect()
    }

    /// The merged stacks of each event, and the texts for the ids in them.
    fn merged_stacks(self, folded: FoldedSamples) -> (Vec<MergedStacks>, RecordingSymbols<'r, 'w>) {
        // Each worker has the stacks of all events, in event order. `callchains` below has one item for each event.
        let mut parts: Vec<_> = folded.parts.into_iter().map(Vec::into_iter).collect();
        let mut all_merged: Vec<MergedStacks> = self
            .source
            .callchains
            .iter()
            .map(|_| {
                let stacks = parts.iter_mut().filter_map(Iterator::next);
                MergedStacks::new(stacks.collect(), self.threads)
            })
            .collect();
        for (merged, sum) in all_merged.iter_mut().zip(folded.filtered) {
            merged.filtered.add(sum);
        }
        let names = RecordingSymbols {
            resolver: self.resolver,
            payloads: self.payloads.finish(),
            lines: self.lines.finish(),
            properties: self.properties.finish(),
            values: self.values.finish(),
            no_properties: Properties::default(),
            sockets: &self.source.sockets,
            nanoseconds: self.options.nanoseconds,
            shows_addresses: self.options.addresses,
        };
        (all_merged, names)
    }
}

impl RecordingInfo<'_> {
    /// The events of `group` with their stacks.
    fn events<'l>(&self, group: &[usize], of_group: &'l [MergedStacks]) -> Vec<EventInput<'l>> {
        let event = |(index, merged): (&usize, &'l MergedStacks)| EventInput {
            index: *index,
            merged,
            callchains: self.callchains.get(*index) == Some(&true),
        };
        group.iter().zip(of_group).map(event).collect()
    }
}

/// The texts and properties of ids, from the World, the loaded symbols and the pools of the workers.
pub(crate) struct RecordingSymbols<'a, 'w> {
    resolver: &'a Resolver<'w>,
    payloads: PooledTexts,
    lines: PooledTexts,
    properties: Vec<Properties>,
    values: Vec<Arc<FieldValues>>,
    /// The properties of samples without any.
    no_properties: Properties,
    sockets: &'a [i32],
    nanoseconds: bool,
    shows_addresses: bool,
}

impl RecordingNames for RecordingSymbols<'_, '_> {
    fn comm(&self, comm: CommId) -> &str {
        self.resolver.world().comm(comm)
    }

    fn last_comm(&self, thread: Thread) -> &str {
        let world = self.resolver.world();
        world.comm(world.comm_last(thread.tid, Order::MAX))
    }

    fn dso(&self, dso: DsoId) -> &str {
        let dso = self.resolver.world().dso(dso);
        // `--verbose` shows both addresses and paths.
        match self.shows_addresses {
            true => &dso.long_name,
            false => &dso.short_name,
        }
    }

    fn shows_addresses(&self) -> bool {
        self.shows_addresses
    }

    fn origin(&self, dso: DsoId) -> Option<SymbolOrigin> {
        self.resolver.symbol_origin(dso)
    }

    fn symbol(&self, symbol: SymbolId) -> &str {
        self.resolver.symbol_name(symbol)
    }

    fn is_inlined(&self, symbol: SymbolId) -> bool {
        self.resolver.is_inlined(symbol)
    }

    fn shares_its_address(&self, symbol: SymbolId) -> bool {
        // Memory of JIT-compiled code can be used again for another function.
        let dso = self.resolver.world().dsos().get(symbol.dso.0 as usize);
        dso.is_some_and(|dso| dso.has_functions)
    }

    fn line(&self, line: TextId) -> &str {
        self.lines.get(line)
    }

    fn payload(&self, payload: TextId) -> &str {
        self.payloads.get(payload)
    }

    fn payload_rank(&self, payload: TextId) -> u32 {
        self.payloads.rank(payload)
    }

    fn field(&self, input: &KeyInput<'_>) -> Option<&FieldValue> {
        let values = self.values.get(input.context.values?.0 as usize)?;
        values.get(input.field_number)?.as_ref()
    }

    fn properties(&self, input: &KeyInput<'_>) -> &Properties {
        let properties = input.context.properties;
        let properties =
            properties.and_then(|properties| self.properties.get(properties.0 as usize));
        properties.unwrap_or(&self.no_properties)
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
