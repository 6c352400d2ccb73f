//! The calls that counting makes, as a trait: tests put made-up counters in the kernel's place.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rperf_sys::{Cgroup, Counter, Observed, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, Reading};
use rperf_wire::{Attr, ReadFormat};

/// Where one counter counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Where<'a> {
    /// Task and CPU.
    pub(super) observed: Observed,
    /// The cgroup whose tasks alone are seen.
    pub(super) cgroup: Option<&'a Cgroup>,
}

impl Where<'_> {
    /// As the call has it, for messages.
    pub(super) fn arguments(&self) -> (Observed, u64) {
        match self.cgroup {
            None => (self.observed, PERF_FLAG_FD_CLOEXEC),
            Some(cgroup) => {
                let pid = cgroup.as_fd().as_raw_fd();
                let observed = Observed {
                    pid,
                    ..self.observed
                };
                (observed, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP)
            }
        }
    }
}

/// What counts.
pub(super) trait Kernel {
    /// An open event.
    type Counter;

    /// Opens an event, as a member of `group` where one is given.
    fn open(
        &self,
        attr: &Attr,
        place: Where<'_>,
        group: Option<&Self::Counter>,
    ) -> io::Result<Self::Counter>;

    /// Reads an event, or with `GROUP` all of the group that it leads.
    fn read(&self, counter: &Self::Counter, format: ReadFormat) -> io::Result<Vec<Reading>>;

    /// The number of the counter's descriptor, for messages.
    fn number(&self, counter: &Self::Counter) -> i32;
}

/// The kernel that runs.
#[derive(Debug)]
pub(super) struct Running;

impl Kernel for Running {
    type Counter = Counter;

    fn open(&self, attr: &Attr, place: Where<'_>, group: Option<&Counter>) -> io::Result<Counter> {
        match place.cgroup {
            Some(cgroup) => {
                Counter::open_in_cgroup(attr, (cgroup.as_fd(), place.observed.cpu), group)
            }
            None => Counter::open(attr, place.observed, group),
        }
    }

    fn read(&self, counter: &Counter, format: ReadFormat) -> io::Result<Vec<Reading>> {
        counter.read_all(format)
    }

    fn number(&self, counter: &Counter) -> i32 {
        counter.as_fd().as_raw_fd()
    }
}
