//! Helpers shared by the tests of the BPF programs.

use std::{fs, thread};

use rperf_testkit::skip;

use crate::Error;

/// Returns the BPF programs that were started. If they cannot run on this system, reports the test of this thread as skipped,
/// with the reason, and returns `None`.
///
/// # Panics
/// If they failed to start for another reason, or if tests must not be skipped (see [`skip`]).
pub(crate) fn running<T>(started: Result<T, Error>) -> Option<T> {
    match started {
        Ok(programs) => Some(programs),
        Err(
            error
            @ (Error::NoBpf | Error::NotPermitted | Error::PidNamespace | Error::Architecture),
        ) => {
            skip(
                thread::current().name().unwrap_or_default(),
                &error.to_string(),
            );
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the id of this thread.
pub(crate) fn this_thread() -> u32 {
    let link = fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}
