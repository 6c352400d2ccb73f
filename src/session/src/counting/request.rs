//! Options and results of counting.

use std::path::PathBuf;
use std::time::Duration;

use rperf_count::{CounterCounts, CounterReading};
use rperf_events::{EventSpec, Tool};
use rperf_sys::{CpuList, Program, Usage, WaitStatus};

use super::CountOutput;
use crate::{SessionObserver, Target};

/// An event to count.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEvent {
    /// The event.
    pub spec: EventSpec,
    /// The cgroup it is restricted to.
    pub cgroup: Option<String>,
    /// The CPUs of its PMU, if not all (`cpumask` in sysfs).
    pub cpus: Option<CpuList>,
}

/// When events are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountStart {
    /// By the exec of the workload, or immediately for other targets.
    AtOnce,
    /// After a delay.
    After(Duration),
    /// Never, except by a control command.
    Never,
}

/// Interval mode (`-I`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalOptions {
    /// Length of an interval.
    pub every: Duration,
    /// Number of intervals; `None` for no limit.
    pub max_intervals: Option<u64>,
}

/// How BPF programs count the events with [`EventSpec::bpf`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BpfCounting {
    /// Ids of the BPF programs to observe (`--bpf-prog`), not of those that count. Events are counted only while an observed
    /// program runs. Empty to count events of tasks or cgroups.
    pub programs: Vec<u32>,
    /// The offset of `task_struct::pid` (from BTF), by which children are found. `None` if it is not needed or not found; in the
    /// latter case, tasks cannot be counted with their children.
    pub task_pid: Option<u16>,
}

/// Options of a count.
#[derive(Debug, Clone)]
pub struct CountRequest {
    /// The target.
    pub target: Target,
    /// The command to run; with targets other than [`Target::Workload`] it only determines the
    /// duration.
    pub workload: Option<Program>,
    /// The events, in order.
    pub events: Vec<CountEvent>,
    /// Whether children of the observed tasks are counted.
    pub inherit: bool,
    /// How BPF programs count the events that they sum up.
    pub bpf: BpfCounting,
    /// When events are enabled.
    pub start: CountStart,
    /// Interval mode, if requested.
    pub interval: Option<IntervalOptions>,
    /// Maximum duration; also ends the workload.
    pub timeout: Option<Duration>,
    /// Where counts are recorded, if requested.
    pub record_to: Option<CountOutput>,
    /// Where proc is mounted: `/proc`.
    pub proc: PathBuf,
    /// Where sysfs is mounted: `/sys`.
    pub sysfs: PathBuf,
}

/// The readings of each event.
#[derive(Debug, Clone, Default)]
pub struct EventReadings {
    /// The events as opened, in the order of the request: an unprivileged user gets `cs:u` for
    /// `cs`.
    pub events: Vec<EventSpec>,
    /// Whether the kernel supports each of them.
    pub supported: Vec<bool>,
    /// The readings of each, one per counter.
    pub cells: Vec<Vec<CounterReading>>,
}

impl EventReadings {
    /// Sets the readings of tool events. Without `usage`, which is known only after the workload has exited, those of `user_time`
    /// and `system_time` are unchanged.
    pub(super) fn set_times(&mut self, elapsed: Duration, usage: Option<Usage>) {
        for (spec, cells) in self.events.iter().zip(&mut self.cells) {
            let time = match spec.tool {
                None => continue,
                Some(Tool::Duration) => Some(elapsed),
                Some(Tool::User) => usage.map(|usage| usage.user),
                Some(Tool::System) => usage.map(|usage| usage.system),
            };
            let nanos = time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            if let (Some(value), Some(cell)) = (nanos, cells.first_mut()) {
                // Not 0, even if the time is 0: that would mean that the event was never enabled.
                let enabled = value.max(1);
                cell.counts = CounterCounts {
                    value,
                    enabled,
                    running: enabled,
                };
            }
        }
    }
}

/// Result of a count.
#[derive(Debug, Clone)]
pub struct CountSummary {
    /// Duration of the count. A delay is not included, unless the count ended during it.
    pub elapsed: Duration,
    /// The final readings.
    pub readings: EventReadings,
    /// Exit status of the workload; `None` without one, and if the observed tasks exited before it.
    pub workload_status: Option<WaitStatus>,
    /// Resource usage of the workload.
    pub usage: Option<Usage>,
    /// SIGINT, SIGTERM or SIGHUP, if received; SIGPIPE if the reader of recorded counts closed the pipe before the last reading.
    pub signal: Option<i32>,
}

/// Receives notices and the readings of intervals.
pub trait CountObserver: SessionObserver {
    /// Handles the end of an interval: the time since counting began, the interval's duration, and its counts.
    fn interval(&mut self, at: Duration, took: Duration, readings: &EventReadings);
}
