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

/// The largest share of a busy processor for the calling thread (nice -20), and soon when it has to wait for others: those that
/// ask for short turns come first (Linux 6.12). Until dropped; who may not have that share has the turns alone.
#[derive(Debug)]
pub struct Urgent {
    before: Option<Attributes>,
}

/// The lowest nice value, of the most urgent threads.
const MOST_URGENT: i32 = -20;
/// The shortest turn that the kernel gives, in nanoseconds.
const SHORTEST: u64 = 100_000;

impl Urgent {
    /// Makes the calling thread urgent, if it is one of ordinary priority.
    #[must_use]
    pub fn begin() -> Self {
        let ordinary = u32::try_from(libc::SCHED_OTHER).ok();
        let before = Attributes::current().filter(|now| Some(now.policy) == ordinary);
        let is_done = |before: &Attributes| {
            [MOST_URGENT, before.nice].into_iter().any(|nice| {
                let wanted = Attributes {
                    nice,
                    runtime: SHORTEST,
                    ..*before
                };
                wanted.set()
            })
        };
        Self {
            before: before.filter(is_done),
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            before.set();
        }
    }
}

/// How a thread is run (`struct sched_attr` of include/uapi/linux/sched/types.h, its first version).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Nanoseconds of a turn, for ordinary threads since Linux 6.12, before that 0.
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

impl Attributes {
    /// Those of the calling thread.
    fn current() -> Option<Self> {
        let mut found = Self::default();
        // SAFETY: the call writes at most SIZE bytes of plain numbers into the structure; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, SIZE, 0_u32) };
        (result == 0).then_some(found)
    }

    /// Gives them to the calling thread; whether that is allowed.
    fn set(&self) -> bool {
        let wanted = Self {
            size: SIZE,
            ..*self
        };
        // SAFETY: the call reads the structure, which says how long it is and outlives it.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0_u32) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_ends() {
        let before = Attributes::current().unwrap();
        let urgent = Urgent::begin();
        let meanwhile = Attributes::current().unwrap();
        // SAFETY: reads a number.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        assert_eq!(meanwhile.nice, nice);
        // Who is not root keeps the nice value; kernels before 6.12 know no turns.
        assert!([MOST_URGENT, before.nice].contains(&nice), "{meanwhile:?}");
        assert!([SHORTEST, 0].contains(&meanwhile.runtime), "{meanwhile:?}");
        assert_eq!(meanwhile.policy, before.policy);
        drop(urgent);
        let after = Attributes::current().unwrap();
        assert_eq!((after.nice, after.runtime), (before.nice, before.runtime));
    }

    #[test]
    fn a_priority_that_there_is_not_is_refused() {
        assert_eq!(
            run_in_real_time(100).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
    }
}
