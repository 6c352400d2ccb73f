//! Recordings of other tools as perf.data.
//!
//! ```text
//! trace.dat (trace-cmd) --TraceDat--> events of each CPU --write--> perf.data with tracepoint samples
//! ```
//!
//! **Invariants.** No input causes a panic. An error about a damaged part names its offset.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod error;
pub mod trace_dat;

pub use error::Error;
