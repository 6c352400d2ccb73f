//! Readings summed up, run by run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::shadow::Counted;
use crate::{Aggregation, Cell, Event, Role, Row, Spread, State, Table, Topology, Unit, Value};

/// How readings become rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grouping {
    /// By what they are summed up.
    pub by: Aggregation,
    /// Where CPUs lie.
    pub topology: Topology,
    /// Whether counts are left as they were read, for whatever part of the time that was (`--no-scale`).
    pub unscaled: bool,
}

/// The counts of some events over one or several runs.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    grouping: &'a Grouping,
    events: Vec<Event>,
    /// By event.
    units: Vec<BTreeMap<Unit, Sums>>,
    elapsed: Spread,
}

/// One event in one unit.
#[derive(Debug, Clone, Default)]
struct Sums {
    /// CPUs or threads.
    merged: usize,
    value: Spread,
    enabled: Spread,
    running: Spread,
}

/// The same in one run.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    merged: usize,
    value: f64,
    enabled: u64,
    running: u64,
    /// Time enabled of what was on a counter at all.
    seen: u64,
}

impl<'a> Sheet<'a> {
    /// An empty one.
    #[must_use]
    pub fn new(events: Vec<Event>, grouping: &'a Grouping) -> Self {
        Self {
            grouping,
            units: vec![BTreeMap::new(); events.len()],
            events,
            elapsed: Spread::default(),
        }
    }

    /// Adds a run that took `elapsed`: the readings of each event.
    pub fn add(&mut self, elapsed: Duration, readings: &[Vec<Cell>]) {
        self.elapsed.add(elapsed.as_secs_f64() * 1e9);
        let mut runs: Vec<BTreeMap<Unit, Run>> = vec![BTreeMap::new(); self.events.len()];
        for (index, (event, cells)) in self.events.iter().zip(readings).enumerate() {
            let Some(units) = runs.get_mut(event.merged_into.unwrap_or(index)) else {
                continue;
            };
            let by = self.grouping.by_of(event);
            for cell in cells {
                let run = units.entry(self.grouping.unit(by, cell)).or_default();
                run.add(cell, self.grouping.unscaled);
            }
        }
        for (units, runs) in self.units.iter_mut().zip(runs) {
            for (unit, run) in runs {
                units.entry(unit).or_default().add(&run);
            }
        }
    }

    /// How long the runs took, in nanoseconds.
    #[must_use]
    pub fn elapsed(&self) -> Spread {
        self.elapsed
    }

    /// The rows: by event and in it by unit where units are CPUs or threads, otherwise by unit and in it by event.
    #[must_use]
    pub fn table(&self) -> Table {
        let all: BTreeSet<Unit> = self
            .units
            .iter()
            .flat_map(BTreeMap::keys)
            .copied()
            .collect();
        let shown: Vec<usize> = (0..self.events.len())
            .filter(|index| {
                self.events
                    .get(*index)
                    .is_some_and(|event| event.merged_into.is_none())
            })
            .collect();
        let mut rows: Vec<Row> = Vec::new();
        for unit in &all {
            let counted = self.counted(*unit);
            rows.extend(
                shown
                    .iter()
                    .filter_map(|index| self.row(*index, *unit, &counted)),
            );
        }
        if matches!(self.grouping.by, Aggregation::Cpu | Aggregation::Thread) {
            rows.sort_by_key(|row| row.event);
        }
        Table {
            events: self.events.clone(),
            rows,
            runs: self.elapsed.number(),
        }
    }

    /// What metrics of a unit are made of.
    fn counted(&self, unit: Unit) -> Counted<'_> {
        let bases = self.events.iter().enumerate().filter_map(|(index, event)| {
            let sums = self.units.get(index)?.get(&unit)?;
            let is_base = event.role != Role::Other && event.supported && sums.value.number() > 0;
            is_base.then(|| (index, sums.value.mean()))
        });
        Counted {
            events: &self.events,
            bases: bases.collect(),
            elapsed: self.elapsed.mean(),
        }
    }

    /// The row of an event in a unit; `None` where it isn't counted there.
    fn row(&self, index: usize, unit: Unit, counted: &Counted<'_>) -> Option<Row> {
        let event = self.events.get(index)?;
        let sums = self.units.get(index)?.get(&unit)?;
        let mut row = Row {
            event: index,
            unit,
            merged: sums.merged,
            state: State::NotCounted,
            metrics: Vec::new(),
        };
        if !event.supported {
            row.state = State::NotSupported;
            // perf gives up at the first CPU.
            row.merged = 1;
        } else if sums.value.number() > 0 {
            let raw = sums.value.mean();
            let value = raw * event.scale;
            row.metrics = counted.metrics(event, raw, value);
            row.state = State::Counted(Value {
                value,
                deviation: sums.value.percent(),
                enabled: sums.enabled.mean(),
                running: sums.running.mean(),
            });
        }
        Some(row)
    }
}

impl Grouping {
    /// By what the counts of an event are summed up.
    fn by_of(&self, event: &Event) -> Aggregation {
        match self.by {
            Aggregation::Cpu if event.per_core => Aggregation::Core,
            by => by,
        }
    }

    fn unit(&self, by: Aggregation, cell: &Cell) -> Unit {
        match (by, cell.cpu, cell.thread) {
            (Aggregation::Global, ..) => Unit::All,
            (Aggregation::Thread, _, Some(thread)) => Unit::Thread(thread),
            (by, Some(cpu), _) => self.topology.unit(by, cpu),
            _ => Unit::All,
        }
    }
}

impl Run {
    fn add(&mut self, cell: &Cell, unscaled: bool) {
        let counts = cell.counts;
        self.merged += 1;
        self.enabled += counts.enabled;
        self.running += counts.running;
        if let Some(scaled) = counts.scaled() {
            self.seen += counts.enabled;
            self.value += if unscaled { counts.value } else { scaled } as f64;
        } else if unscaled {
            self.seen += counts.enabled;
        }
    }

    /// The count; where one of several counters never ran, what the others tell of its time too.
    fn value(&self) -> Option<f64> {
        if self.running == 0 {
            return None;
        }
        let missed = self.seen > 0 && self.seen < self.enabled;
        Some(match missed {
            true => (self.value * self.enabled as f64 / self.seen as f64).round(),
            false => self.value,
        })
    }
}

impl Sums {
    fn add(&mut self, run: &Run) {
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
