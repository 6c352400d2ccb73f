//! Rewriters: they transform the records of a recording before they are written to the file.
//!
//! Each implements [`rperf_perfdata::Rewriter`]: it receives complete records in rounds and appends their replacement. `record` runs them
//! on a thread of their own.

mod chain;
mod filter;
mod off_cpu;
mod unwind;

pub use chain::chain;
pub use filter::FilterRewriter;
pub use off_cpu::OffCpu;
pub use unwind::{LiveUnwinder, UnwindOptions};
