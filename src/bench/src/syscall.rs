//! Measures the time of system calls that are repeated.

use std::hint::black_box;
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use rperf_sys::{Children, execute, process_group};

use crate::BenchError;

/// A system call that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// getppid(2), which does next to nothing in the kernel.
    Getppid,
    /// getpgid(2).
    Getpgid,
    /// fork(2) of a process that exits at once, and the wait for it.
    Fork,
    /// fork(2) and execve(2) of `/bin/true`, and the wait for it.
    Execve,
}

impl Call {
    /// Returns the name of the call.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Getppid => "getppid",
            Self::Getpgid => "getpgid",
            Self::Fork => "fork",
            Self::Execve => "execve",
        }
    }

    /// Makes the call `loops` times; returns the total time.
    ///
    /// # Errors
    /// [`BenchError::System`] if fork(2) or the wait for the child fails, [`BenchError::Child`] if `/bin/true` cannot be
    /// executed.
    pub fn run(self, loops: u64) -> Result<Duration, BenchError> {
        let start = Instant::now();
        for _ in 0..loops {
            match self {
                Self::Getppid => {
                    black_box(parent_id());
                }
                Self::Getpgid => {
                    black_box(process_group());
                }
                Self::Fork => run_child(|| 0)?,
                Self::Execve => run_child(|| {
                    let _ = execute(c"/bin/true");
                    // Reached only if `/bin/true` could not be executed.
                    1
                })?,
            }
        }
        Ok(start.elapsed())
    }
}

/// Forks a child that exits with the status that `work` returns, and waits for it.
fn run_child(work: impl FnOnce() -> u8) -> Result<(), BenchError> {
    let mut children = Children::default();
    children.fork(work).map_err(BenchError::of("fork"))?;
    match children.wait().map_err(BenchError::of("wait"))? {
        // No child failed.
        None => Ok(()),
        Some(status) => Err(BenchError::Child(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_takes_time() {
        for call in [Call::Getppid, Call::Getpgid, Call::Fork, Call::Execve] {
            assert!(call.run(3).unwrap() > Duration::ZERO, "{call:?}");
        }
    }

    #[test]
    fn a_child_that_fails_is_an_error() {
        assert!(matches!(run_child(|| 3), Err(BenchError::Child(_))));
    }
}
