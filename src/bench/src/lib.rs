//! Benchmarks of the kernel and of this machine. The type of a benchmark holds its settings; its `run` returns times, counts or
//! rates.
//!
//! [`Report`] holds the results of several benchmarks, and is written and read as JSON. [`Comparison`] compares a result with
//! an earlier one.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod breakpoint;
pub mod epoll;
mod error;
pub mod futex;
mod gate;
pub mod mem;
pub mod numa;
mod random;
mod report;
pub mod sched;
mod series;
pub mod syscall;
mod thread_gate;
mod timed;
pub mod uprobe;
mod verdict;
mod workers;

pub use error::BenchError;
pub use report::{Entry, Report, ReportError};
pub use series::{Better, Series, Value};
pub use verdict::{Comparison, Verdict};
