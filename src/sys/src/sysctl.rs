//! The kernel settings under `/proc/sys` that restrict perf events.

use std::fs;
use std::path::PathBuf;

/// Settings read from a proc file system. Each getter returns `None` if the kernel lacks the file.
#[derive(Debug, Clone)]
pub struct Sysctl {
    root: PathBuf,
}

impl Sysctl {
    /// Settings of the proc file system mounted at `proc`.
    pub fn new(proc: impl Into<PathBuf>) -> Self {
        Self {
            root: proc.into().join("sys/kernel"),
        }
    }

    /// Restrictions for users without `CAP_PERFMON`: 2 allows their own user space only, 1 also the
    /// kernel, 0 also whole CPUs, -1 everything.
    #[must_use]
    pub fn perf_event_paranoid(&self) -> Option<i64> {
        self.number("perf_event_paranoid")
    }

    /// Highest sampling frequency in Hz.
    #[must_use]
    pub fn perf_event_max_sample_rate(&self) -> Option<u64> {
        self.number("perf_event_max_sample_rate")
            .and_then(|rate| u64::try_from(rate).ok())
    }

    /// Kilobytes of ring memory that a user may lock in addition to `RLIMIT_MEMLOCK`.
    #[must_use]
    pub fn perf_event_mlock_kb(&self) -> Option<u64> {
        self.number("perf_event_mlock_kb")
            .and_then(|size| u64::try_from(size).ok())
    }

    /// Maximum depth of callchains.
    #[must_use]
    pub fn perf_event_max_stack(&self) -> Option<u64> {
        self.number("perf_event_max_stack")
            .and_then(|depth| u64::try_from(depth).ok())
    }

    /// Visibility of kernel addresses: 0 to all users, 1 with `CAP_SYSLOG`, 2 to none.
    #[must_use]
    pub fn kptr_restrict(&self) -> Option<i64> {
        self.number("kptr_restrict")
    }

    fn number(&self, name: &str) -> Option<i64> {
        let text = fs::read_to_string(self.root.join(name)).ok()?;
        text.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sysctls_of_this_kernel_and_none_elsewhere() {
        assert!(Sysctl::new("/proc").perf_event_paranoid().is_some());
        assert_eq!(Sysctl::new("/nowhere").perf_event_paranoid(), None);
    }
}
