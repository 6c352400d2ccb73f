//! Converts recordings of trace-cmd, and text of perf script, to perf.data.
//!
//! ```text
//! trace.dat (trace-cmd) --TraceDat--> events of each CPU --write--> perf.data with tracepoint samples
//! text of perf script --ScriptText--> samples of tasks   --write--> perf.data, and symbol files of the objects in the text
//! ```
//!
//! **Invariants.** No input causes a panic. An error about a field, part or line names an offset in the file.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod digest;
mod error;
pub mod script_text;
pub mod trace_dat;

pub use error::Error;
