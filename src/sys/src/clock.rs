//! Clocks of clock_gettime(2), and the time stamp counter.

use std::io;

/// Returns the time of clock `clockid` (`CLOCK_*`) in nanoseconds.
///
/// # Errors
/// What clock_gettime(2) reports: `EINVAL` for an unknown clock.
pub fn clock_time(clockid: i32) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the structure passed to it.
    let result = unsafe { libc::clock_gettime(clockid, &raw mut time) };
    nanoseconds(result, time)
}

/// Returns the resolution of clock `clockid` in nanoseconds.
///
/// # Errors
/// What clock_getres(2) reports: `EINVAL` for an unknown clock.
pub fn clock_resolution(clockid: i32) -> io::Result<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes to the structure passed to it.
    let result = unsafe { libc::clock_getres(clockid, &raw mut time) };
    nanoseconds(result, time)
}

/// Returns the time stamp counter of x86-64, the clock of its hardware traces; `None` on other architectures.
#[must_use]
pub fn timestamp_counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction.
    let counter = Some(unsafe { core::arch::x86_64::_rdtsc() });
    #[cfg(not(target_arch = "x86_64"))]
    let counter = None;
    counter
}

/// Returns `time` in nanoseconds; if the call that wrote it failed with `result`, the error of that call.
fn nanoseconds(result: i32, time: libc::timespec) -> io::Result<u64> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let part = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_x86_64_has_a_timestamp_counter_and_it_does_not_decrease() {
        let first = timestamp_counter();
        assert_eq!(first.is_some(), cfg!(target_arch = "x86_64"));
        assert!(timestamp_counter() >= first);
    }

    #[test]
    fn the_monotonic_clock_does_not_decrease_and_unknown_clocks_are_errors() {
        let first = clock_time(libc::CLOCK_MONOTONIC).unwrap();
        assert!(clock_time(libc::CLOCK_MONOTONIC).unwrap() >= first);
        assert!(clock_resolution(libc::CLOCK_MONOTONIC).unwrap() > 0);
        assert!(clock_time(1000).is_err());
    }
}
