//! Counting: events are opened, and read at intervals and at the end.

mod bundle;
mod count_output;
mod counter_affinity;
mod kernel;
mod kernel_sums;
mod open;
mod request;
mod run;
pub(crate) mod wait_conditions;

pub use count_output::CountOutput;
pub use request::{
    BpfCounting, CountEvent, CountObserver, CountRequest, CountStart, CountSummary, EventReadings,
    IntervalOptions,
};
pub use run::count;
