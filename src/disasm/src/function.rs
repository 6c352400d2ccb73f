//! Functions and what fell on them.

use std::cmp::Reverse;

use rperf_hist::Watched;
use rperf_replay::{DsoId, EventIndex};
use rperf_resolve::{Frame, SymbolId};
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

    /// Its share of the events of `whole`, in percent.
    #[must_use]
    pub fn share_of(self, whole: Self) -> f64 {
        self.period as f64 * 100.0 / whole.period.max(1) as f64
    }
}

/// One function as some events saw it, which are shown beside each other.
#[derive(Debug, Clone)]
pub struct Function {
    /// The function.
    pub symbol: SymbolId,
    /// A place in it where a sample fell.
    pub frame: Frame,
    /// What fell on each address, in terms of [`Frame::address`], by rising address: the place of the event, and its hit.
    pub hits: Vec<(u64, usize, Hit)>,
    /// All of it, by event.
    pub sums: Vec<Hit>,
}

impl Function {
    /// What `events` see of a function that is watched while it runs; `None` as long as its place is not known.
    #[must_use]
    pub fn watched(watched: &Watched, events: &[EventIndex]) -> Option<Self> {
        let frame = *watched.frame()?;
        let mut found = Found::new(frame);
        for (event, address, sum) in watched.sums() {
            let hit = Hit {
                samples: sum.samples,
                period: sum.period,
            };
            found.hits.insert((event, address), hit);
        }
        Some(found.seen_by(frame.symbol?, events))
    }

    /// The samples of all events.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.sums.iter().map(|hit| hit.samples).sum()
    }
}

/// Where a function was first seen, and what fell on its addresses.
pub(crate) struct Found {
    pub(crate) frame: Frame,
    pub(crate) hits: FxHashMap<(EventIndex, u64), Hit>,
}

impl Found {
    /// A function of which nothing was seen yet.
    pub(crate) fn new(frame: Frame) -> Self {
        let hits = FxHashMap::default();
        Self { frame, hits }
    }

    fn seen_by(&self, symbol: SymbolId, events: &[EventIndex]) -> Function {
        let mut sums = vec![Hit::default(); events.len()];
        let mut hits = Vec::new();
        for ((event, address), hit) in &self.hits {
            let Some(place) = events.iter().position(|wanted| wanted == event) else {
                continue;
            };
            sums[place].add(*hit);
            hits.push((*address, place, *hit));
        }
        hits.sort_unstable_by_key(|(address, place, _)| (*address, *place));
        Function {
            symbol,
            frame: self.frame,
            hits,
            sums,
        }
    }
}

/// All functions that samples fell on.
pub struct Functions {
    pub(crate) found: FxHashMap<SymbolId, Found>,
    pub(crate) totals: FxHashMap<EventIndex, Hit>,
    /// Samples that pass all filters, whatever they fell on.
    pub(crate) chosen: FxHashMap<EventIndex, Hit>,
    /// Samples of objects that fell on no symbol.
    pub(crate) unnamed: FxHashMap<DsoId, u64>,
}

impl Functions {
    /// Those that samples of `events` fell on; the ones with most of the first event come first.
    #[must_use]
    pub fn of(&self, events: &[EventIndex]) -> Vec<Function> {
        let functions = self.found.iter();
        let functions = functions.map(|(symbol, found)| found.seen_by(*symbol, events));
        let functions = functions.filter(|function| !function.hits.is_empty());
        let mut functions: Vec<Function> = functions.collect();
        functions.sort_by_cached_key(|function| {
            let periods: Vec<u64> = function.sums.iter().map(|sum| sum.period).collect();
            (Reverse(periods), function.symbol)
        });
        functions
    }

    /// What `events` saw of the function at `frame`, if only nothing; `None` where none is known there.
    #[must_use]
    pub fn at(&self, frame: &Frame, events: &[EventIndex]) -> Option<Function> {
        let symbol = frame.symbol?;
        let none = Found::new(*frame);
        let found = self.found.get(&symbol).unwrap_or(&none);
        Some(found.seen_by(symbol, events))
    }

    /// How many samples fell into objects, but on no function that is known; most first.
    #[must_use]
    pub fn unnamed(&self) -> Vec<(DsoId, u64)> {
        let unnamed = self.unnamed.iter().map(|(dso, samples)| (*dso, *samples));
        let mut unnamed: Vec<(DsoId, u64)> = unnamed.collect();
        unnamed.sort_unstable_by_key(|(dso, samples)| (Reverse(*samples), *dso));
        unnamed
    }

    /// Whether there were samples at all, if only in no function.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        !self.totals.is_empty()
    }

    /// The samples of an event that pass all filters, those in no function too.
    #[must_use]
    pub fn chosen(&self, event: EventIndex) -> Hit {
        self.chosen.get(&event).copied().unwrap_or_default()
    }

    /// What shares of an event are of: with its samples that belong to no row.
    #[must_use]
    pub fn total(&self, event: EventIndex) -> Hit {
        self.totals.get(&event).copied().unwrap_or_default()
    }
}
