//! What is shown in the end.

use crate::{Event, Metric, Unit};

/// Rows in the order in which they are shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The events that rows refer to.
    pub events: Vec<Event>,
    /// The rows.
    pub rows: Vec<Row>,
    /// Runs that the values are means of.
    pub runs: u32,
}

/// An event in one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Index of the event.
    pub event: usize,
    /// What it is of.
    pub unit: Unit,
    /// CPUs whose counts are in it.
    pub merged: usize,
    /// The count, or why there is none.
    pub state: State,
    /// What follows from it.
    pub metrics: Vec<Metric>,
}

/// A count, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum State {
    /// The kernel or the machine has no such counter.
    NotSupported,
    /// It never was on a counter, or nothing that it looks at ran.
    NotCounted,
    /// A count.
    Counted(Value),
}

/// A count, the mean of all runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// In the event's unit.
    pub value: f64,
    /// Standard deviation of the mean, in percent of it.
    pub deviation: f64,
    /// Nanoseconds it was enabled, all CPUs and threads together.
    pub enabled: f64,
    /// Nanoseconds it was on a counter.
    pub running: f64,
}

impl Value {
    /// How much of the time it was on a counter, in percent.
    #[must_use]
    pub fn percent_running(&self) -> f64 {
        if self.enabled == 0.0 {
            return 100.0;
        }
        100.0 * self.running / self.enabled
    }
}
