//! Counter readings: scaled for multiplexing, aggregated by CPU, core, socket and so on, averaged
//! over runs, with metrics.
//!
//! Pure arithmetic: nothing is opened, read or printed. Readings are passed as [`CounterReading`]s, one for
//! each counter; an [`Aggregator`] aggregates them into a [`CountTable`] of plain rows.
//!
//! **Invariant.** A metric only combines counts of the same unit of aggregation (a CPU, a socket, …). Events that did
//! not run have no count.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod aggregator;
mod event;
mod metric;
mod reading;
mod recorded;
mod role;
mod row;
mod shadow;
mod spread;
mod topology;
mod unit;

pub use aggregator::{AggregationRules, Aggregator};
pub use event::CountedEvent;
pub use metric::{MetricValue, NumberFormat};
pub use reading::{CounterCounts, CounterReading};
pub use recorded::{IntervalCounts, RecordedCounts};
pub use role::{CountingMode, Role};
pub use row::{CountRow, CountState, CountTable, CountValue};
pub use spread::Spread;
pub use topology::{CpuLocation, Topology};
pub use unit::{Aggregation, AggregationUnit, ModeNumbers};
