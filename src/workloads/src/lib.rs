//! Programs with known functions, threads and data for `test -w`: the content of their profiles is known in advance.
//!
//! Functions and data that perf's test scripts look for in a profile are exported under their C names, and exported functions
//! are not inlined. `StackFrame` keeps the frame pointers that unwinding needs. The names and arguments of the workloads are
//! those of Linux perf.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]
#![expect(
    unsafe_code,
    reason = "exported symbols, assembly, system calls, signal handlers, fork, and code written at run time"
)]

mod arguments;
mod brstack;
mod code_with_type;
mod context_switch_loop;
mod datasym;
// These two files contain Rust. perf's test scripts look for source lines of deterministic.c and inlineloop.c in a profile, so
// the files have the names of perf's C sources.
#[path = "deterministic.c"]
mod deterministic;
mod duration;
#[path = "inlineloop.c"]
mod inlineloop;
mod jitdump;
mod landlock;
mod leafloop;
mod named_threads;
mod noploop;
mod process;
mod sqrtloop;
mod stack_frame;
mod thloop;
mod traploop;

use std::io;
use std::thread::JoinHandle;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::stack_frame::{StackFrame, distinct_instruction};

/// A program that `test -w` runs.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The name on the command line.
    pub name: &'static str,
    /// Its arguments as in a usage line; empty if it has none.
    pub arguments: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    body: fn(&mut Arguments<'_>) -> Result<(), WorkloadError>,
}

impl Workload {
    /// Runs the workload in this process until it ends.
    ///
    /// # Errors
    /// An argument of `words` is invalid; there are too many arguments; a system call failed; a thread or child process ended
    /// abnormally; or the workload is not implemented for this processor.
    pub fn run(&self, words: &[String]) -> Result<(), WorkloadError> {
        let mut arguments = Arguments::new(self, words);
        (self.body)(&mut arguments)
    }
}

/// Error of a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An argument is invalid.
    #[error("{workload}: {argument} '{word}': expected {expected}")]
    Argument {
        /// The workload.
        workload: &'static str,
        /// The argument as in the usage line.
        argument: &'static str,
        /// The word that was given.
        word: String,
        /// The valid values.
        expected: String,
    },
    /// There are more words than the workload has arguments.
    #[error("{workload}: unexpected argument '{word}'")]
    TooMany {
        /// The workload.
        workload: &'static str,
        /// The first word that is too many.
        word: String,
    },
    /// A system call failed.
    #[error("{failure}")]
    System {
        /// What failed, such as `cannot fork`.
        failure: &'static str,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The workload is not implemented for this processor.
    #[error("{workload}: not implemented for this processor")]
    Processor {
        /// The workload.
        workload: &'static str,
    },
    /// A thread or child process ended abnormally.
    #[error("{workload}: its {part} ended abnormally")]
    Ended {
        /// The workload.
        workload: &'static str,
        /// `thread` or `child process`.
        part: &'static str,
    },
}

/// Returns a function that wraps the error of a system call; `failure` says what failed.
pub(crate) fn failed(failure: &'static str) -> impl FnOnce(io::Error) -> WorkloadError {
    move |source| WorkloadError::System { failure, source }
}

/// Waits for the end of all threads of a workload; an error if one panicked.
pub(crate) fn join<T>(
    threads: Vec<JoinHandle<T>>,
    workload: &'static str,
) -> Result<(), WorkloadError> {
    let panicked = threads
        .into_iter()
        .filter_map(|thread| thread.join().err())
        .count();
    match panicked {
        0 => Ok(()),
        _ => Err(WorkloadError::Ended {
            workload,
            part: "thread",
        }),
    }
}

/// Every workload, in the order of `--list-workloads`.
pub const WORKLOADS: &[Workload] = &[
    noploop::WORKLOAD,
    thloop::WORKLOAD,
    named_threads::WORKLOAD,
    leafloop::WORKLOAD,
    sqrtloop::WORKLOAD,
    brstack::WORKLOAD,
    datasym::WORKLOAD,
    landlock::WORKLOAD,
    traploop::WORKLOAD,
    inlineloop::WORKLOAD,
    jitdump::WORKLOAD,
    context_switch_loop::WORKLOAD,
    deterministic::WORKLOAD,
    code_with_type::WORKLOAD,
];

/// Returns the workload of that name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests;
