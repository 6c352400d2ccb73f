//! Aggregation of readings over units and runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::shadow::UnitCounts;
use crate::{
    Aggregation, AggregationUnit, CountRow, CountState, CountTable, CountValue, CountedEvent,
    CounterReading, Role, Spread, Topology,
};

/// How readings are aggregated into rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AggregationRules {
    /// The aggregation mode.
    pub by: Aggregation,
    /// Topology of the CPUs.
    pub topology: Topology,
    /// Whether counts are not scaled for multiplexing (`--no-scale`).
    pub unscaled: bool,
}

/// Aggregates the counts of events over one or several runs.
#[derive(Debug, Clone)]
pub struct Aggregator<'a> {
    rules: &'a AggregationRules,
    events: Vec<CountedEvent>,
    /// By event: the statistics of each unit.
    units: Vec<BTreeMap<AggregationUnit, RunStatistics>>,
    elapsed: Spread,
}

/// An event in one unit, over all runs in which it was counted. Times are in nanoseconds.
#[derive(Debug, Clone, Default)]
struct RunStatistics {
    /// Largest number of readings that were added up in one run. Runs without a count are included.
    merged: usize,
    value: Spread,
    enabled: Spread,
    running: Spread,
}

/// Sums of an event in one unit and one run. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct RunSums {
    /// Number of readings that were added up.
    merged: usize,
    value: f64,
    enabled: u64,
    running: u64,
    /// Time enabled of the counters that ran, or of all counters if counts are not scaled.
    counted_time: u64,
}

impl<'a> Aggregator<'a> {
    /// Creates an empty aggregator.
    #[must_use]
    pub fn new(events: Vec<CountedEvent>, rules: &'a AggregationRules) -> Self {
        Self {
            rules,
            units: vec![BTreeMap::new(); events.len()],
            events,
            elapsed: Spread::default(),
        }
    }

    /// Adds a run of duration `elapsed`: the readings of each event.
    pub fn add(&mut self, elapsed: Duration, readings: &[Vec<CounterReading>]) {
        self.elapsed.add(elapsed.as_secs_f64() * 1e9);
        let mut run: Vec<BTreeMap<AggregationUnit, RunSums>> =
            vec![BTreeMap::new(); self.events.len()];
        for (index, (event, readings)) in self.events.iter().zip(readings).enumerate() {
            let Some(units) = run.get_mut(event.merged_into.unwrap_or(index)) else {
                continue;
            };
            let by = self.rules.mode_of(event);
            for reading in readings {
                let sums = units.entry(self.rules.unit(by, reading)).or_default();
                sums.add(reading, self.rules.unscaled);
            }
        }
        for (statistics, units) in self.units.iter_mut().zip(run) {
            for (unit, sums) in units {
                statistics.entry(unit).or_default().add(&sums);
            }
        }
    }

    /// Durations of the runs in nanoseconds.
    #[must_use]
    pub fn elapsed(&self) -> Spread {
        self.elapsed
    }

    /// The rows: ordered by event and then by unit if units are CPUs or threads, otherwise by unit
    /// and then by event.
    #[must_use]
    pub fn table(&self) -> CountTable {
        let units: BTreeSet<AggregationUnit> = self
            .units
            .iter()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect();
        let events = self.events.iter().enumerate();
        let row_events = events.filter(|(_, event)| event.merged_into.is_none());
        let mut rows: Vec<CountRow> = Vec::new();
        for unit in &units {
            let counted = self.counted(*unit);
            rows.extend(
                row_events
                    .clone()
                    .filter_map(|(index, event)| self.row(index, event, *unit, &counted)),
            );
        }
        if matches!(self.rules.by, Aggregation::Cpu | Aggregation::Thread) {
            rows.sort_by_key(|row| row.event);
        }
        CountTable {
            events: self.events.clone(),
            rows,
            runs: self.elapsed.number(),
        }
    }

    /// The counts of a unit from which metrics are computed. Bases are the counted events with a role in metrics, such as cycles.
    fn counted(&self, unit: AggregationUnit) -> UnitCounts<'_> {
        let bases = self.events.iter().enumerate().filter_map(|(index, event)| {
            let value = self.units.get(index)?.get(&unit)?.value;
            let is_base = event.role != Role::Other && event.supported && value.number() > 0;
            is_base.then(|| (index, value.mean()))
        });
        UnitCounts {
            events: &self.events,
            bases: bases.collect(),
            elapsed: self.elapsed.mean(),
        }
    }

    /// The row of an event in a unit; `None` if the event has no reading there.
    fn row(
        &self,
        index: usize,
        event: &CountedEvent,
        unit: AggregationUnit,
        counted: &UnitCounts<'_>,
    ) -> Option<CountRow> {
        let statistics = self.units.get(index)?.get(&unit)?;
        let mut row = CountRow {
            event: index,
            unit,
            merged_counters: statistics.merged,
            state: CountState::NotCounted,
            metrics: Vec::new(),
        };
        if !event.supported {
            row.state = CountState::NotSupported;
            // As in perf, which tries to open such an event on the first CPU only.
            row.merged_counters = 1;
        } else if statistics.value.number() > 0 {
            let raw = statistics.value.mean();
            let value = raw * event.scale;
            row.metrics = counted.metrics(event, raw, value);
            row.state = CountState::Counted(CountValue {
                value,
                error_percent: statistics.value.error_percent(),
                enabled: statistics.enabled.mean(),
                running: statistics.running.mean(),
            });
        }
        Some(row)
    }
}

impl AggregationRules {
    /// The aggregation mode of an event: with a row for each CPU, a per-core event has a row for each core.
    fn mode_of(&self, event: &CountedEvent) -> Aggregation {
        match self.by {
            Aggregation::Cpu if event.per_core => Aggregation::Core,
            by => by,
        }
    }

    /// The unit of a reading; [`AggregationUnit::All`] also if its CPU or thread is unknown.
    fn unit(&self, by: Aggregation, reading: &CounterReading) -> AggregationUnit {
        match (by, reading.cpu, reading.thread) {
            (Aggregation::Global, ..) => AggregationUnit::All,
            (Aggregation::Thread, _, Some(thread)) => AggregationUnit::Thread(thread),
            (by, Some(cpu), _) => self.topology.unit(by, cpu),
            _ => AggregationUnit::All,
        }
    }
}

impl RunSums {
    fn add(&mut self, reading: &CounterReading, unscaled: bool) {
        let counts = reading.counts;
        self.merged += 1;
        self.enabled = self.enabled.saturating_add(counts.enabled);
        self.running = self.running.saturating_add(counts.running);
        if let Some(scaled) = counts.scaled() {
            self.counted_time = self.counted_time.saturating_add(counts.enabled);
            self.value += if unscaled { counts.value } else { scaled } as f64;
        } else if unscaled {
            self.counted_time = self.counted_time.saturating_add(counts.enabled);
        }
    }

    /// The count; if counts are scaled and some counters never ran, it is extrapolated from the others. `None` if none ran.
    fn value(&self) -> Option<f64> {
        if self.running == 0 {
            return None;
        }
        let is_partial = self.counted_time > 0 && self.counted_time < self.enabled;
        Some(match is_partial {
            true => (self.value * self.enabled as f64 / self.counted_time as f64).round(),
            false => self.value,
        })
    }
}

impl RunStatistics {
    fn add(&mut self, run: &RunSums) {
        self.merged = self.merged.max(run.merged);
        if let Some(value) = run.value() {
            self.value.add(value);
            self.enabled.add(run.enabled as f64);
            self.running.add(run.running as f64);
        }
    }
}

#[cfg(test)]
mod tests;
