//! Functions and their samples.

use std::cmp::Reverse;

use rperf_hist::WatchedFunction;
use rperf_replay::{DsoId, EventIndex};
use rperf_resolve::{Frame, SymbolId};
use rustc_hash::FxHashMap;

/// Number and period of samples: at an address, in a function, or of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HitCount {
    /// Number of samples.
    pub samples: u64,
    /// Sum of their periods.
    pub period: u64,
}

impl HitCount {
    /// Adds another one.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
    }

    /// The period as a percentage of that of `total`.
    #[must_use]
    pub fn share_of(self, total: Self) -> f64 {
        self.period as f64 * 100.0 / total.period.max(1) as f64
    }
}

/// A function with its samples of selected events.
#[derive(Debug, Clone)]
pub struct SampledFunction {
    /// The function.
    pub symbol: SymbolId,
    /// A frame in it.
    pub frame: Frame,
    /// Address (as in [`Frame::address`]), index in [`SampledFunction::sums`], and hits; by ascending address.
    pub hits: Vec<(u64, usize, HitCount)>,
    /// Hits of the whole function, by index in the list of selected events.
    pub sums: Vec<HitCount>,
}

impl SampledFunction {
    /// The hits of `events` in a watched function of a live view; `None` until a frame with its symbol is known.
    #[must_use]
    pub fn watched(watched: &WatchedFunction, events: &[EventIndex]) -> Option<Self> {
        let frame = *watched.frame()?;
        let mut function = FunctionHits::new(frame);
        for (event, address, sum) in watched.sums() {
            let hit = HitCount {
                samples: sum.samples,
                period: sum.period,
            };
            function.hits.insert((event, address), hit);
        }
        Some(function.of_events(frame.symbol?, events))
    }

    /// Number of samples of all events.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.sums.iter().map(|hit| hit.samples).sum()
    }
}

/// The hits of all events in a function, by event and address.
pub(crate) struct FunctionHits {
    /// A frame in the function.
    pub(crate) frame: Frame,
    pub(crate) hits: FxHashMap<(EventIndex, u64), HitCount>,
}

impl FunctionHits {
    /// A function without hits.
    pub(crate) fn new(frame: Frame) -> Self {
        let hits = FxHashMap::default();
        Self { frame, hits }
    }

    /// The function with its hits of `events` only.
    fn of_events(&self, symbol: SymbolId, events: &[EventIndex]) -> SampledFunction {
        let mut sums = vec![HitCount::default(); events.len()];
        let mut hits = Vec::new();
        for ((event, address), hit) in &self.hits {
            let Some(index) = events.iter().position(|other| other == event) else {
                continue;
            };
            sums[index].add(*hit);
            hits.push((*address, index, *hit));
        }
        hits.sort_unstable_by_key(|(address, index, _)| (*address, *index));
        SampledFunction {
            symbol,
            frame: self.frame,
            hits,
            sums,
        }
    }
}

/// The functions with samples, and totals by event.
pub struct SampledFunctions {
    pub(crate) functions: FxHashMap<SymbolId, FunctionHits>,
    /// The divisors of percentages, see [`SampledFunctions::total`].
    pub(crate) totals: FxHashMap<EventIndex, HitCount>,
    /// Samples that have an address and are accepted by the filters, in any function or none.
    pub(crate) accepted: FxHashMap<EventIndex, HitCount>,
    /// Samples by object, at addresses without a symbol.
    pub(crate) unnamed: FxHashMap<DsoId, u64>,
}

impl SampledFunctions {
    /// The functions with samples of `events`, by descending period of the first event, then of the second,
    /// and so on.
    #[must_use]
    pub fn of(&self, events: &[EventIndex]) -> Vec<SampledFunction> {
        let functions = self.functions.iter();
        let functions = functions.map(|(symbol, hits)| hits.of_events(*symbol, events));
        let functions = functions.filter(|function| !function.hits.is_empty());
        let mut functions: Vec<SampledFunction> = functions.collect();
        functions.sort_by_cached_key(|function| {
            let periods: Vec<u64> = function.sums.iter().map(|sum| sum.period).collect();
            (Reverse(periods), function.symbol)
        });
        functions
    }

    /// The function at `frame` with the hits of `events`, possibly none; `None` if the frame has
    /// no symbol.
    #[must_use]
    pub fn at(&self, frame: &Frame, events: &[EventIndex]) -> Option<SampledFunction> {
        let symbol = frame.symbol?;
        let none = FunctionHits::new(*frame);
        let hits = self.functions.get(&symbol).unwrap_or(&none);
        Some(hits.of_events(symbol, events))
    }

    /// Objects with samples at addresses without a known function, and the number of these samples, descending.
    #[must_use]
    pub fn unnamed(&self) -> Vec<(DsoId, u64)> {
        let unnamed = self.unnamed.iter().map(|(dso, samples)| (*dso, *samples));
        let mut unnamed: Vec<(DsoId, u64)> = unnamed.collect();
        unnamed.sort_unstable_by_key(|(dso, samples)| (Reverse(*samples), *dso));
        unnamed
    }

    /// Whether [`SampledFunctions::total`] of any event has samples.
    #[must_use]
    pub fn has_samples(&self) -> bool {
        !self.totals.is_empty()
    }

    /// The samples of an event that have an address and are accepted by the filters, with or without a function.
    #[must_use]
    pub fn accepted(&self, event: EventIndex) -> HitCount {
        self.accepted.get(&event).copied().unwrap_or_default()
    }

    /// The divisor of an event's percentages: all of its samples with an address, also those that the filters reject
    /// (`SampleTreatment::Filtered`), but not those that they ignore (`SampleTreatment::Ignored`).
    #[must_use]
    pub fn total(&self, event: EventIndex) -> HitCount {
        self.totals.get(&event).copied().unwrap_or_default()
    }
}
