//! Counts samples by address, and groups the addresses by function.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use rperf_hist::{SampleTreatment, SelectSamples, parallel};
use rperf_replay::{DsoId, EventIndex, Fold, MappingId, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver};
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::function::{FunctionHits, HitCount, SampledFunctions};

/// A sampled address of an event. An address without a mapping is counted for all processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct SampledAddress {
    event: EventIndex,
    mapping: Option<MappingId>,
    mode: CpuMode,
    ip: u64,
}

/// Counts samples, as a fold over a recording. Addresses are resolved when all are counted.
pub struct AddressCounts<'r, 'w> {
    resolver: &'r Resolver<'w>,
    select: Option<&'r dyn SelectSamples>,
    /// The samples at each address, and the context of the first one, in which the address is resolved.
    addresses: FxHashMap<SampledAddress, (AddressContext, HitCount)>,
    totals: FxHashMap<EventIndex, HitCount>,
    /// Percentage of an event's period below which a function may be omitted.
    min_percent: f64,
}

impl<'r, 'w> AddressCounts<'r, 'w> {
    /// Counts the samples that `select` accepts, or all without `select`. Totals also include samples that are
    /// [`SampleTreatment::Filtered`], but not those that are [`SampleTreatment::Ignored`].
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>, select: Option<&'r dyn SelectSamples>) -> Self {
        Self {
            resolver,
            select,
            addresses: FxHashMap::default(),
            totals: FxHashMap::default(),
            min_percent: 0.0,
        }
    }

    /// Allows functions below this percentage of every event to be omitted: the symbols of an object whose samples are below
    /// it for every event need not be read.
    #[must_use]
    pub fn with_min_percent(mut self, min_percent: f64) -> Self {
        self.min_percent = min_percent;
        self
    }

    /// Returns the objects that reach the minimum percentage of an event. Returns all objects if none reaches it (so that a
    /// message can name functions with samples), or if there is a filter, which may select functions by name.
    fn hot_objects(&self) -> BTreeSet<DsoId> {
        let world = self.resolver.world();
        let mut sums: FxHashMap<(DsoId, EventIndex), HitCount> = FxHashMap::default();
        for (address, (_, hit)) in &self.addresses {
            if let Some(mapping) = address.mapping {
                let key = (world.mapping(mapping).dso, address.event);
                sums.entry(key).or_default().add(*hit);
            }
        }
        let all = sums.keys().map(|(dso, _)| *dso);
        let hot = sums.iter().filter(|((_, event), sum)| {
            let total = self.totals.get(event).copied().unwrap_or_default();
            // `share_of` is a percentage, too.
            sum.share_of(total) >= self.min_percent
        });
        let hot: BTreeSet<DsoId> = hot.map(|((dso, _), _)| *dso).collect();
        match hot.is_empty() || self.select.is_some() {
            true => all.collect(),
            false => hot,
        }
    }

    /// Returns the functions with samples. The symbols of their objects are read by at most `threads` threads.
    #[must_use]
    pub fn functions(self, threads: NonZeroUsize) -> SampledFunctions {
        let world = self.resolver.world();
        let hot = self.hot_objects();
        parallel::map(hot.iter().copied().collect(), threads, |dso| {
            self.resolver.load_symbols(dso)
        });
        let mut functions = SampledFunctions {
            functions: FxHashMap::default(),
            totals: self.totals,
            accepted: FxHashMap::default(),
            unnamed: FxHashMap::default(),
        };
        let is_omitted = |mapping: MappingId| !hot.contains(&world.mapping(mapping).dso);
        for (address, (context, hit)) in self.addresses {
            if address.mapping.is_some_and(is_omitted) {
                // Objects are omitted only without a filter, so all of their samples are accepted.
                functions
                    .accepted
                    .entry(address.event)
                    .or_default()
                    .add(hit);
                continue;
            }
            let frame = self.resolver.locate(context, address.mode, address.ip);
            let is_counted = |select: &dyn SelectSamples| {
                select.frame(self.resolver, &frame) == SampleTreatment::Counted
            };
            if self.select.is_none_or(is_counted) {
                functions.add(&frame, address.event, hit);
            }
        }
        functions
    }
}

impl SampledFunctions {
    fn add(&mut self, frame: &Frame, event: EventIndex, hit: HitCount) {
        self.accepted.entry(event).or_default().add(hit);
        let Some(symbol) = frame.symbol else {
            if let Some(dso) = frame.dso {
                *self.unnamed.entry(dso).or_default() += hit.samples;
            }
            return;
        };
        let function = self
            .functions
            .entry(symbol)
            .or_insert_with(|| FunctionHits::new(*frame));
        let key = (event, frame.address);
        function.hits.entry(key).or_default().add(hit);
    }
}

impl Fold for AddressCounts<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let select = |select: &dyn SelectSamples| select.sample(world, sample);
        let treatment = self.select.map_or(SampleTreatment::Counted, select);
        if treatment == SampleTreatment::Ignored {
            return;
        }
        let Some(ip) = sample.wire.ip else {
            return;
        };
        let hit = HitCount {
            samples: 1,
            period: sample.period,
        };
        self.totals.entry(sample.event).or_default().add(hit);
        if treatment != SampleTreatment::Counted {
            return;
        }
        // `order` of the context is the sample's position in the record order: `lookup` finds the mapping at that position.
        let context = AddressContext::of(sample);
        let mode = sample.cpu_mode();
        let address = SampledAddress {
            event: sample.event,
            mapping: world.lookup(context.machine, mode, context.pid, context.order, ip),
            mode,
            ip,
        };
        let entry = self.addresses.entry(address);
        entry.or_insert((context, HitCount::default())).1.add(hit);
    }

    fn merge(&mut self, later: Self) {
        for (event, total) in later.totals {
            self.totals.entry(event).or_default().add(total);
        }
        for (address, (context, hit)) in later.addresses {
            let entry = self.addresses.entry(address);
            entry.or_insert((context, HitCount::default())).1.add(hit);
        }
    }
}
