//! Samples counted by function and address.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use rperf_hist::{Choice, Select, parallel};
use rperf_replay::{DsoId, EventIndex, Fold, MappingId, Sample, World};
use rperf_resolve::{Frame, Place, Resolver};
use rperf_wire::CpuMode;
use rustc_hash::FxHashMap;

use crate::function::{Found, Functions, Hit};

/// An address that samples of an event fell on. Where nothing is mapped, it is that of any process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Spot {
    event: EventIndex,
    mapping: Option<MappingId>,
    mode: CpuMode,
    ip: u64,
}

/// Counts samples; to be folded over a recording. Their addresses get names when all are counted.
pub struct Hits<'r, 'w> {
    resolver: &'r Resolver<'w>,
    select: Option<&'r dyn Select>,
    spots: FxHashMap<Spot, (Place, Hit)>,
    totals: FxHashMap<EventIndex, Hit>,
}

impl<'r, 'w> Hits<'r, 'w> {
    /// Counts those that `select` lets pass.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>, select: Option<&'r dyn Select>) -> Self {
        Self {
            resolver,
            select,
            spots: FxHashMap::default(),
            totals: FxHashMap::default(),
        }
    }

    /// The functions that were hit. Symbols of their objects are read by so many threads.
    #[must_use]
    pub fn functions(self, threads: NonZeroUsize) -> Functions {
        let world = self.resolver.world();
        let objects = self.spots.keys().filter_map(|spot| spot.mapping);
        let objects: BTreeSet<DsoId> = objects.map(|at| world.mapping(at).dso).collect();
        let objects = objects.into_iter().collect();
        parallel::map(objects, threads, |dso| self.resolver.read(dso));
        let mut functions = Functions {
            found: FxHashMap::default(),
            totals: self.totals,
            chosen: FxHashMap::default(),
            unnamed: FxHashMap::default(),
        };
        for (spot, (place, hit)) in self.spots {
            let frame = self.resolver.locate(place, spot.mode, spot.ip);
            let is_counted = |select: &dyn Select| {
                let choice = select.place(self.resolver, &frame);
                choice == Choice::Counted
            };
            if self.select.is_none_or(is_counted) {
                functions.add(&frame, spot.event, hit);
            }
        }
        functions
    }
}

impl Functions {
    fn add(&mut self, frame: &Frame, event: EventIndex, hit: Hit) {
        self.chosen.entry(event).or_default().add(hit);
        let Some(symbol) = frame.symbol else {
            if let Some(dso) = frame.dso {
                *self.unnamed.entry(dso).or_default() += hit.samples;
            }
            return;
        };
        let found = self
            .found
            .entry(symbol)
            .or_insert_with(|| Found::new(*frame));
        let key = (event, frame.address);
        found.hits.entry(key).or_default().add(hit);
    }
}

impl Fold for Hits<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let choice = |select: &dyn Select| select.sample(world, sample);
        let choice = self.select.map_or(Choice::Counted, choice);
        let Some(ip) = sample.wire.ip.filter(|_| choice != Choice::Ignored) else {
            return;
        };
        let hit = Hit {
            samples: 1,
            period: sample.period,
        };
        self.totals.entry(sample.event).or_default().add(hit);
        if choice != Choice::Counted {
            return;
        }
        let place = Place {
            machine: sample.machine(),
            pid: sample.pid,
            order: sample.order,
        };
        let mode = sample.cpu_mode();
        let spot = Spot {
            event: sample.event,
            mapping: world.lookup(place.machine, mode, place.pid, place.order, ip),
            mode,
            ip,
        };
        let found = self.spots.entry(spot);
        found.or_insert((place, Hit::default())).1.add(hit);
    }

    fn merge(&mut self, later: Self) {
        for (event, total) in later.totals {
            self.totals.entry(event).or_default().add(total);
        }
        for (spot, (place, hit)) in later.spots {
            let found = self.spots.entry(spot);
            found.or_insert((place, Hit::default())).1.add(hit);
        }
    }
}
