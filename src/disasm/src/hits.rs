//! Samples counted by function and address.

use std::cmp::Reverse;

use rperf_hist::{Choice, Select};
use rperf_replay::{EventIndex, Fold, Sample, World};
use rperf_resolve::{Frame, Place, Resolver, SymbolId};
use rustc_hash::FxHashMap;

/// Samples that fell on one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hit {
    /// How many.
    pub samples: u64,
    /// The events that they stand for.
    pub period: u64,
}

impl Hit {
    /// Takes in another.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }
}

/// Samples of one event in one function.
type Key = (EventIndex, SymbolId);

/// Where a function was first seen, and what fell on its addresses.
#[derive(Clone)]
struct Found {
    frame: Frame,
    hits: FxHashMap<u64, Hit>,
}

/// Counts samples; to be folded over a recording.
pub struct Hits<'r, 'w> {
    resolver: &'r Resolver<'w>,
    select: Option<&'r dyn Select>,
    found: FxHashMap<Key, Found>,
    totals: FxHashMap<EventIndex, Hit>,
}

impl<'r, 'w> Hits<'r, 'w> {
    /// Counts those that `select` lets pass.
    #[must_use]
    pub fn new(resolver: &'r Resolver<'w>, select: Option<&'r dyn Select>) -> Self {
        Self {
            resolver,
            select,
            found: FxHashMap::default(),
            totals: FxHashMap::default(),
        }
    }

    /// What was counted: by event, then the functions with most of it first.
    #[must_use]
    pub fn functions(self) -> Functions {
        let functions = self.found.into_iter().map(|((event, symbol), found)| {
            let mut sum = Hit::default();
            found.hits.values().for_each(|hit| sum.add(*hit));
            let mut hits: Vec<(u64, Hit)> = found.hits.into_iter().collect();
            hits.sort_unstable_by_key(|(address, _)| *address);
            Function {
                event,
                symbol,
                frame: found.frame,
                hits,
                sum,
            }
        });
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_unstable_by_key(|function| {
            (
                function.event,
                Reverse(function.sum.period),
                function.symbol,
            )
        });
        Functions {
            functions,
            totals: self.totals,
        }
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
        let place = Place {
            machine: sample.machine(),
            pid: sample.pid,
            order: sample.order,
        };
        let frame = self.resolver.locate(place, sample.cpu_mode(), ip);
        let (Some(symbol), Choice::Counted) = (frame.symbol, choice) else {
            return;
        };
        let is_chosen =
            |select: &dyn Select| select.place(self.resolver, &frame) == Choice::Counted;
        if !self.select.is_none_or(is_chosen) {
            return;
        }
        let found = self.found.entry((sample.event, symbol));
        let found = found.or_insert_with(|| Found {
            frame,
            hits: FxHashMap::default(),
        });
        found.hits.entry(frame.address).or_default().add(hit);
    }

    fn merge(&mut self, later: Self) {
        for (event, total) in later.totals {
            self.totals.entry(event).or_default().add(total);
        }
        for (key, other) in later.found {
            let Some(found) = self.found.get_mut(&key) else {
                self.found.insert(key, other);
                continue;
            };
            for (address, hit) in other.hits {
                found.hits.entry(address).or_default().add(hit);
            }
        }
    }
}

/// All functions that samples fell on.
pub struct Functions {
    functions: Vec<Function>,
    totals: FxHashMap<EventIndex, Hit>,
}

impl Functions {
    /// By event, then those with most of it first.
    #[must_use]
    pub fn all(&self) -> &[Function] {
        &self.functions
    }

    /// Whether there were samples at all, if only in no function.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        !self.totals.is_empty()
    }

    /// All chosen samples of an event, those in no function too.
    #[must_use]
    pub fn total(&self, event: EventIndex) -> Hit {
        self.totals.get(&event).copied().unwrap_or_default()
    }
}

/// One function as one event saw it.
#[derive(Debug, Clone)]
pub struct Function {
    /// The event.
    pub event: EventIndex,
    /// The function.
    pub symbol: SymbolId,
    /// A place in it where a sample fell.
    pub frame: Frame,
    /// What fell on each address, in terms of [`Frame::address`], by rising address.
    pub hits: Vec<(u64, Hit)>,
    /// All of it.
    pub sum: Hit,
}
