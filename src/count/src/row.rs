//! Rows of counts: the result of an aggregation.

use crate::{AggregationUnit, CountedEvent, MetricValue};

/// Rows in output order.
#[derive(Debug, Clone, PartialEq)]
pub struct CountTable {
    /// The events that rows refer to.
    pub events: Vec<CountedEvent>,
    /// The rows.
    pub rows: Vec<CountRow>,
    /// Number of runs that were averaged.
    pub runs: u32,
}

/// An event in one unit of aggregation.
#[derive(Debug, Clone, PartialEq)]
pub struct CountRow {
    /// Index of the event in [`CountTable::events`].
    pub event: usize,
    /// The unit of aggregation.
    pub unit: AggregationUnit,
    /// Number of counters, each of a CPU or thread, whose counts were summed up; the largest of all runs. As in perf, 1 if the
    /// event is not supported.
    pub merged_counters: usize,
    /// The count, or why it is missing.
    pub state: CountState,
    /// Metrics computed from the count.
    pub metrics: Vec<MetricValue>,
}

/// A count, or why it is missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CountState {
    /// The kernel or machine doesn't support the event.
    NotSupported,
    /// The event was never on a counter, or its tasks did not run.
    NotCounted,
    /// A count.
    Counted(CountValue),
}

/// A count, averaged over the runs in which the event was on a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountValue {
    /// The count in the event's unit; by default extrapolated to the time enabled.
    pub value: f64,
    /// Standard error of the mean, in percent.
    pub error_percent: f64,
    /// Nanoseconds enabled, summed over CPUs and threads.
    pub enabled: f64,
    /// Nanoseconds on a counter, summed over CPUs and threads.
    pub running: f64,
}

impl CountValue {
    /// Percentage of the time enabled during which the event was on a counter; 100 if it was never enabled.
    #[must_use]
    pub fn percent_running(&self) -> f64 {
        if self.enabled == 0.0 {
            return 100.0;
        }
        100.0 * self.running / self.enabled
    }
}
