//! Helpers for the tests of several programs.

use std::{fs, thread};

use rperf_testkit::skip;

use crate::Error;

/// Returns the programs that were started. `None` if they cannot run here: reports the test of this thread as skipped, with the
/// reason.
///
/// # Panics
/// Other errors; also a skipped test, if none may be skipped ([`skip`]).
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
