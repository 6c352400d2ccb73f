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
    /// The share of an event, in percent, that a function must have to be asked for.
    least: f64,
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
            least: 0.0,
        }
    }

    /// Functions with less than this share of every event, in percent, may be left out: symbols of objects that have less
    /// altogether are not read.
    #[must_use]
    pub fn from_share(mut self, least: f64) -> Self {
        self.least = least;
        self
    }

    /// Objects that have the share; all where none has it, so that it can be told what there is, or where names may choose.
    fn hot(&self) -> BTreeSet<DsoId> {
        let world = self.resolver.world();
        let mut sums: FxHashMap<(DsoId, EventIndex), Hit> = FxHashMap::default();
        for (spot, (_, hit)) in &self.spots {
            if let Some(mapping) = spot.mapping {
                let key = (world.mapping(mapping).dso, spot.event);
                sums.entry(key).or_default().add(*hit);
            }
        }
        let all = sums.keys().map(|(dso, _)| *dso);
        let hot = sums.iter().filter(|((_, event), sum)| {
            let total = self.totals.get(event).copied().unwrap_or_default();
            sum.share_of(total) >= self.least
        });
        let hot: BTreeSet<DsoId> = hot.map(|((dso, _), _)| *dso).collect();
        match hot.is_empty() || self.select.is_some() {
            true => all.collect(),
            false => hot,
        }
    }

    /// The functions that were hit. Symbols of their objects are read by so many threads.
    #[must_use]
    pub fn functions(self, threads: NonZeroUsize) -> Functions {
        let world = self.resolver.world();
        let objects = self.hot();
        parallel::map(objects.iter().copied().collect(), threads, |dso| {
            self.resolver.read(dso)
        });
        let mut functions = Functions {
            found: FxHashMap::default(),
            totals: self.totals,
            chosen: FxHashMap::default(),
            unnamed: FxHashMap::default(),
        };
        let is_hot = |at: MappingId| objects.contains(&world.mapping(at).dso);
        for (spot, (place, hit)) in self.spots {
            if !spot.mapping.is_none_or(is_hot) {
                functions.chosen.entry(spot.event).or_default().add(hit);
                continue;
            }
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
        let place = Place::of(sample);
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
