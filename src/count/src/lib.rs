//! What counters say: readings scaled for the time they shared a counter, summed up by unit of the machine, averaged over
//! runs, with the metrics that follow from them.
//!
//! Pure arithmetic: nothing is opened, read or printed. Readings come in as [`Cell`]s, one for each place where an event
//! was open; a [`Sheet`] sums them up and ends in a [`Table`] of plain rows.
//!
//! **Invariant.** A metric divides counts of one row's own unit (this CPU, that socket) and nothing else. What did not
//! run has no number.

mod cell;
mod event;
mod metric;
mod role;
mod rounds;
mod row;
mod shadow;
mod sheet;
mod spread;
mod topology;
mod unit;

pub use cell::{Cell, Counts};
pub use event::Event;
pub use metric::{Form, Metric};
pub use role::{Role, Side};
pub use rounds::{Round, Rounds};
pub use row::{Row, State, Table, Value};
pub use sheet::{Grouping, Sheet};
pub use spread::Spread;
pub use topology::{CpuPlace, Topology};
pub use unit::{Aggregation, Unit};
