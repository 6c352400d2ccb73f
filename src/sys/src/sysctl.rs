//! The kernel settings under `/proc/sys` that decide what perf events may do.

use std::fs;
use std::path::PathBuf;

/// Settings read from a proc file system. Each getter is `None` where the kernel lacks the file.
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

    /// What users without `CAP_PERFMON` may do: 2 only their own user space, 1 also the kernel on
    /// their behalf, 0 also whole CPUs, -1 everything.
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

    /// Kilobytes of ring memory a user may lock besides `RLIMIT_MEMLOCK`.
    #[must_use]
    pub fn perf_event_mlock_kb(&self) -> Option<u64> {
        self.number("perf_event_mlock_kb")
            .and_then(|size| u64::try_from(size).ok())
    }

    /// Deepest callchain.
    #[must_use]
    pub fn perf_event_max_stack(&self) -> Option<u64> {
        self.number("perf_event_max_stack")
            .and_then(|depth| u64::try_from(depth).ok())
    }

    /// Who sees kernel addresses: 0 all, 1 those with `CAP_SYSLOG`, 2 nobody.
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
    fn reads_this_kernel_and_misses_nothing_elsewhere() {
        assert!(Sysctl::new("/proc").perf_event_paranoid().is_some());
        assert_eq!(Sysctl::new("/nowhere").perf_event_paranoid(), None);
    }
}
