//! How urgently the calling thread is run.

use std::io;

/// Runs the calling thread before others of ordinary priority (`SCHED_FIFO`).
///
/// # Errors
/// What sched_setscheduler(2) reports: `EINVAL` for a priority that there is not (1 to 99), `EPERM` without
/// `CAP_SYS_NICE` and beyond `RLIMIT_RTPRIO`.
pub fn run_in_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: the structure is plain numbers, for which zeros are values.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the call reads the structure, which outlives it; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The largest share of a busy processor for the calling thread (nice -20), until dropped. Who may not have that keeps
/// what there is.
#[derive(Debug)]
pub struct Urgent {
    before: Option<i32>,
}

/// The lowest nice value, of the most urgent threads.
const MOST_URGENT: i32 = -20;

impl Urgent {
    /// Makes the calling thread urgent.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: reads a number; `PRIO_PROCESS` with 0 is the calling thread.
        let before = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        Self {
            before: nice(MOST_URGENT).then_some(before),
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            nice(before);
        }
    }
}

fn nice(value: i32) -> bool {
    // SAFETY: sets a number of the calling thread and touches no memory.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current() -> i32 {
        // SAFETY: reads a number.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn urgency_ends() {
        let before = current();
        let urgent = Urgent::begin();
        assert_eq!(current(), urgent.before.map_or(before, |_| MOST_URGENT));
        drop(urgent);
        assert_eq!(current(), before);
    }

    #[test]
    fn a_priority_that_there_is_not_is_refused() {
        assert_eq!(
            run_in_real_time(100).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
    }
}
