//! The kernel settings under `/proc/sys/kernel` that restrict perf events and kernel addresses, and the one that enables the
//! scheduler's statistics.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// The setting that enables the scheduler's statistics.
const SCHEDSTATS: &str = "sched_schedstats";

/// Settings read from a proc file system. Each getter returns `None` if the file can't be read or is no valid number.
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
    /// kernel, 0 also whole CPUs, -1 also raw tracepoint data and unlimited ring memory.
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

    /// Kilobytes of ring memory per online CPU that a user may lock in addition to `RLIMIT_MEMLOCK`.
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

    /// The visibility of kernel addresses: with 2 no user sees them, with 1 users with `CAP_SYSLOG`, with 0 all users. With 0,
    /// `/proc/kallsyms` still hides them from users without `CAP_SYSLOG` unless `perf_event_paranoid` is at most 1.
    #[must_use]
    pub fn kptr_restrict(&self) -> Option<i64> {
        self.number("kptr_restrict")
    }

    /// Whether the counters of `/proc/schedstat` are enabled.
    #[must_use]
    pub fn sched_schedstats(&self) -> Option<bool> {
        self.number(SCHEDSTATS).map(|value| value != 0)
    }

    /// Enables or disables the counters of `/proc/schedstat`.
    ///
    /// # Errors
    /// What open(2) and write(2) report: `EACCES` unless the caller is root.
    pub fn set_sched_schedstats(&self, enabled: bool) -> io::Result<()> {
        fs::OpenOptions::new()
            .write(true)
            .open(self.root.join(SCHEDSTATS))
            .and_then(|mut file| file.write_all(if enabled { b"1\n" } else { b"0\n" }))
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
        assert_eq!(Sysctl::new("/nowhere").sched_schedstats(), None);
    }
}
