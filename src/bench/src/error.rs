//! Errors of benchmarks.

use std::io;
use std::process::ExitStatus;

/// The reason for which a benchmark has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// A system call or another action failed.
    #[error("{action}")]
    System {
        /// The action that failed (`fork`), or the failure (`cannot start a thread`). It is the message.
        action: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// This machine, kernel or user cannot run the benchmark.
    #[error("{0}")]
    Unavailable(String),
    /// A process or thread of the benchmark ended before all were ready.
    #[error("{worker} ended before the start: {reason}")]
    Ended {
        /// Its name, such as `sender 3 of group 1 (process 1234)`.
        worker: String,
        /// Its exit status, its error, or that it returned or panicked.
        reason: String,
    },
    /// A process of the benchmark failed.
    #[error("a process of the benchmark failed: {0}")]
    Child(ExitStatus),
    /// A thread of the benchmark panicked.
    #[error("a thread of the benchmark panicked")]
    Thread,
}

impl BenchError {
    /// Returns a function that converts an I/O error to [`BenchError::System`] with this `action`.
    pub(crate) fn of(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }
}
