//! What to count, and what came out.

use std::path::PathBuf;
use std::time::Duration;

use rperf_count::{Cell, Counts};
use rperf_events::{EventSpec, Tool};
use rperf_sys::{CpuList, Ended, Program, Usage};

use super::Keep;
use crate::{Target, Watch};

/// An event to be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEvent {
    /// The event.
    pub spec: EventSpec,
    /// The cgroup whose tasks alone it sees.
    pub cgroup: Option<String>,
    /// The CPUs that count for all, where its PMU is not in each of them (`cpumask` in sysfs).
    pub cpus: Option<CpuList>,
}

/// When events start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the workload, or at once where others are observed.
    AtOnce,
    /// So long after that.
    After(Duration),
    /// Not by itself.
    Never,
}

/// Reading in between (`-I`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// How often.
    pub every: Duration,
    /// How many times; `None` to the end.
    pub times: Option<u64>,
}

/// A count to be made.
#[derive(Debug, Clone)]
pub struct CountRequest {
    /// Whom to observe.
    pub target: Target,
    /// The command to run; with another target than [`Target::Workload`] it only sets how long.
    pub workload: Option<Program>,
    /// What to count, in order.
    pub events: Vec<CountEvent>,
    /// Whether children of the observed tasks are counted too.
    pub inherit: bool,
    /// When events start.
    pub start: Start,
    /// Whether there are readings in between.
    pub interval: Option<Interval>,
    /// When everything ends, the workload too.
    pub timeout: Option<Duration>,
    /// Where counts are kept, too.
    pub keep: Option<Keep>,
    /// Where proc is mounted: `/proc`.
    pub proc: PathBuf,
    /// Where sysfs is mounted: `/sys`.
    pub sysfs: PathBuf,
}

/// What the counters of each event said.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// The events as they were opened, in the order of the request: who may not count in the kernel gets `cs:u` for `cs`.
    pub events: Vec<EventSpec>,
    /// Whether the kernel has each of them.
    pub supported: Vec<bool>,
    /// The readings of each, one for each place.
    pub cells: Vec<Vec<Cell>>,
}

impl Readings {
    /// Puts in the times that are no events of the kernel.
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
                // A time of nought was taken all the same.
                let taken = value.max(1);
                cell.counts = Counts {
                    value,
                    enabled: taken,
                    running: taken,
                };
            }
        }
    }
}

/// How it went.
#[derive(Debug, Clone)]
pub struct Counted {
    /// From the start of the workload, or of the counters, to the end.
    pub elapsed: Duration,
    /// All that was counted.
    pub readings: Readings,
    /// How the workload ended, if it did by itself or at the time that was set.
    pub ended: Option<Ended>,
    /// What the workload used.
    pub usage: Option<Usage>,
    /// SIGINT, SIGTERM or SIGHUP, if one of them ended it.
    pub signal: Option<i32>,
}

/// Told while it is set up and runs.
pub trait CountWatch: Watch {
    /// An interval is over: how long after the start, how long it was, and what was counted in it.
    fn interval(&mut self, at: Duration, took: Duration, readings: &Readings);
}
