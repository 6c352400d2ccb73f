//! Scheduling priority of the calling thread.

use std::io;

/// Gives the calling thread a real-time priority (`SCHED_FIFO`).
///
/// # Errors
/// What sched_setscheduler(2) reports: `EINVAL` for a priority outside 1 to 99, `EPERM` for a
/// priority above `RLIMIT_RTPRIO` without `CAP_SYS_NICE`.
pub fn run_in_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: the structure consists of numbers, for which zeros are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the call reads the structure, which outlives it; 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A raised priority of the calling thread, until dropped: nice -20 for the largest share of a
/// busy processor, and a short time slice for low wake-up latency (since Linux 6.12). Without the
/// privilege for the nice value, only the slice is set.
#[derive(Debug)]
pub struct PriorityBoost {
    /// The attributes to restore; `None` if they were not changed.
    before: Option<Attributes>,
}

/// The lowest nice value, which is the highest priority.
const MIN_NICE: i32 = -20;
/// The shortest time slice that the kernel allows, in nanoseconds.
const MIN_SLICE_NANOS: u64 = 100_000;

impl PriorityBoost {
    /// Raises the priority of the calling thread if it has the default policy. The result must be dropped by the same thread.
    #[must_use]
    pub fn begin() -> Self {
        let default_policy = u32::try_from(libc::SCHED_OTHER).ok();
        let current = Attributes::current().filter(|now| Some(now.policy) == default_policy);
        let Some(before) = current else {
            return Self { before: None };
        };
        let slice_only = Attributes {
            runtime: MIN_SLICE_NANOS,
            ..before
        };
        let raised = Attributes {
            nice: MIN_NICE,
            ..slice_only
        };
        let is_changed = raised.set() || slice_only.set();
        Self {
            before: is_changed.then_some(before),
        }
    }
}

impl Drop for PriorityBoost {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            before.set();
        }
    }
}

/// Scheduling attributes of a thread (`struct sched_attr` of include/uapi/linux/sched/types.h,
/// first version).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// Time slice in nanoseconds, for threads of the default policy since Linux 6.12; 0 before.
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

impl Attributes {
    /// Attributes of the calling thread.
    fn current() -> Option<Self> {
        let mut attributes = Self::default();
        // SAFETY: the call writes at most SIZE bytes of plain numbers into the structure; 0 is the calling thread.
        let result =
            unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0_u32) };
        (result == 0).then_some(attributes)
    }

    /// Sets the attributes of the calling thread; returns whether that succeeded.
    fn set(&self) -> bool {
        let attributes = Self {
            size: SIZE,
            ..*self
        };
        // SAFETY: the call reads the structure, which contains its own size and outlives the call.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0_u32) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_boost_ends() {
        let before = Attributes::current().unwrap();
        let boost = PriorityBoost::begin();
        let raised = Attributes::current().unwrap();
        // SAFETY: reads a number.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        assert_eq!(raised.nice, nice);
        // Unprivileged users keep the nice value; kernels before 6.12 ignore the slice.
        assert!([MIN_NICE, before.nice].contains(&nice), "{raised:?}");
        assert!([MIN_SLICE_NANOS, 0].contains(&raised.runtime), "{raised:?}");
        assert_eq!(raised.policy, before.policy);
        drop(boost);
        let after = Attributes::current().unwrap();
        assert_eq!((after.nice, after.runtime), (before.nice, before.runtime));
    }

    #[test]
    fn invalid_priorities_are_refused() {
        assert_eq!(
            run_in_real_time(100).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
    }
}
