//! Counting instead of sampling: events opened where they are wanted, read at the end and in between.

mod bundle;
mod keep;
mod kernel;
mod near;
mod open;
mod request;
mod run;
mod wait;

pub use keep::Keep;
pub use request::{CountEvent, CountRequest, CountWatch, Counted, Interval, Readings, Start};
pub use run::count;
