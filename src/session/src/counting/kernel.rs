//! System calls for counting as a trait: tests use a fake kernel.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use rperf_sys::{
    Counter, CounterValue, ObservedTask, OpenCgroup, PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP,
};
use rperf_wire::{Attr, ReadFormat};

/// The task, CPU and cgroup that a counter counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterTarget<'a> {
    /// Task and CPU.
    pub(super) observed: ObservedTask,
    /// The cgroup it is restricted to.
    pub(super) cgroup: Option<&'a OpenCgroup>,
}

impl CounterTarget<'_> {
    /// Returns the arguments of perf_event_open for messages: the task (or the descriptor of the cgroup), CPU and flags.
    pub(super) fn arguments(&self) -> (ObservedTask, u64) {
        match self.cgroup {
            None => (self.observed, PERF_FLAG_FD_CLOEXEC),
            Some(cgroup) => {
                let pid = cgroup.as_fd().as_raw_fd();
                let observed = ObservedTask {
                    pid,
                    ..self.observed
                };
                (observed, PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP)
            }
        }
    }
}

/// Interface to counters.
pub(super) trait CounterKernel {
    /// An open event.
    type Counter;

    /// Opens an event, as a member of the group of `leader` if given.
    fn open(
        &self,
        attr: &Attr,
        target: CounterTarget<'_>,
        leader: Option<&Self::Counter>,
    ) -> io::Result<Self::Counter>;

    /// Reads an event, or with `GROUP` the group that it leads.
    fn read(&self, counter: &Self::Counter, format: ReadFormat) -> io::Result<Vec<CounterValue>>;

    /// Returns the number of the counter's descriptor, for messages.
    fn number(&self, counter: &Self::Counter) -> i32;
}

/// The running kernel.
#[derive(Debug)]
pub(super) struct RunningKernel;

impl CounterKernel for RunningKernel {
    type Counter = Counter;

    fn open(
        &self,
        attr: &Attr,
        target: CounterTarget<'_>,
        leader: Option<&Counter>,
    ) -> io::Result<Counter> {
        match target.cgroup {
            Some(cgroup) => {
                Counter::open_in_cgroup(attr, cgroup.as_fd(), target.observed.cpu, leader)
            }
            None => Counter::open(attr, target.observed, leader),
        }
    }

    fn read(&self, counter: &Counter, format: ReadFormat) -> io::Result<Vec<CounterValue>> {
        counter.read_all(format)
    }

    fn number(&self, counter: &Counter) -> i32 {
        counter.as_fd().as_raw_fd()
    }
}
