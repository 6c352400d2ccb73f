//! The states of CPUs and tasks over time, merged to a resolution, for `timechart`.
//!
//! ```text
//! sched_switch, sched_wakeup --> TaskStates --+
//! cpu_idle, cpu_frequency --> CpuPower -------+--> Timeline per CPU and per task --> Timechart
//! syscalls:sys_enter_*, sys_exit_* -> Spans --+       (short states merged)
//! ```
//!
//! `Spans` joins the entry of each system call with its return. The time is divided into cells of equal length ([`TimeGrid`]).
//! Memory is bounded by tasks, CPUs, the number of cells and a maximum number of stacks, not by events.

mod calls;
mod observer;
mod power;
mod stacks;
mod timeline;
mod wakeups;

use std::collections::BTreeMap;

pub use self::calls::{CALL_STATES, CallKind, CallOptions, TaskCalls};
pub use self::observer::TimechartObserver;
pub use self::power::{CpuPower, FrequencyStep, IDLE_STATES};
pub use self::stacks::{StackChain, StackId, SwitchCallchains};
pub use self::timeline::{MergedStates, PieceContent, TimeGrid, Timeline, TimelinePiece};
pub use self::wakeups::Wakeup;
use crate::SpanCounts;
use crate::sched::{LostStretches, TaskIndex};

/// The number of states of a task's timeline.
pub const TASK_STATES: usize = 5;

/// The states of a task's timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskActivity {
    /// Runs.
    Running,
    /// Runs, and is highlighted.
    Highlighted,
    /// Runnable, waits for a CPU.
    Waiting,
    /// In uninterruptible sleep, usually waiting for a device.
    Blocked,
    /// In any other sleep.
    Sleeping,
}

impl TaskActivity {
    /// All activities, each at the index that [`TaskActivity::state`] returns.
    pub const ALL: [Self; TASK_STATES] = [
        Self::Running,
        Self::Highlighted,
        Self::Waiting,
        Self::Blocked,
        Self::Sleeping,
    ];

    /// Returns the number of the state in a task's timeline.
    #[must_use]
    pub fn state(self) -> usize {
        self as usize
    }
}

/// Which runs of tasks are highlighted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Highlight {
    /// Runs longer than this many nanoseconds.
    LongerThan(u64),
    /// Runs of tasks with this name.
    Name(Vec<u8>),
}

/// A range of times in nanoseconds, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChartRange {
    /// The first time.
    pub first: u64,
    /// The last time.
    pub last: u64,
}

impl ChartRange {
    /// All times.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };

    /// Returns the part of a stretch of time that is in the range. If there is none, the result ends before it begins.
    #[must_use]
    pub fn clip(self, from: u64, to: u64) -> Self {
        Self {
            first: from.max(self.first),
            last: to.min(self.last),
        }
    }
}

/// Settings of a chart: its resolution, range and details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimechartOptions {
    /// The resolution: timelines have from this many to twice as many cells, or fewer if the time is too short for that many
    /// cells of the minimum length.
    pub cells: u64,
    /// The times that are drawn.
    pub range: ChartRange,
    /// The runs that are highlighted.
    pub highlight: Option<Highlight>,
    /// How system calls are drawn.
    pub calls: CallOptions,
}

/// A CPU over time.
#[derive(Debug, Default)]
pub struct CpuLane {
    /// The tasks that ran: state 1 for highlighted runs, 0 for other runs.
    pub usage: Timeline<2, TaskIndex>,
    /// Nanoseconds in which a task ran.
    pub busy: u64,
    /// Idle states and frequencies.
    pub power: CpuPower,
}

/// A task over time.
#[derive(Debug, Default)]
pub struct TaskLane {
    /// Process id; -1 if unknown.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Its names in order of time, at most the last eight; empty if unknown.
    pub names: Vec<Vec<u8>>,
    /// The earliest time in the chart, in nanoseconds: of its events, and of the starts of its states and system calls.
    pub first: u64,
    /// The latest time in the chart, in nanoseconds: of its events, and of the ends of its states and system calls.
    pub last: u64,
    /// Nanoseconds in each [`TaskActivity`].
    pub nanos: [u64; TASK_STATES],
    /// Its states; while it does not run, with the stack with which it was switched out.
    pub states: Timeline<TASK_STATES, Option<StackId>>,
    /// Its system calls.
    pub calls: TaskCalls,
    /// The stack with which it was last switched out.
    stack: Option<StackId>,
}

impl TaskLane {
    /// Maximum number of names stored.
    const MAX_NAMES: usize = 8;

    /// Returns the nanoseconds in which it ran.
    #[must_use]
    pub fn run_time(&self) -> u64 {
        let running = [TaskActivity::Running, TaskActivity::Highlighted];
        let times = running.map(|activity| self.nanos.get(activity.state()).copied());
        times.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Adds a name, unless it is empty or the last one.
    fn rename(&mut self, name: &[u8]) {
        if name.is_empty() || self.names.last().is_some_and(|last| last == name) {
            return;
        }
        if self.names.len() == Self::MAX_NAMES {
            self.names.remove(0);
        }
        self.names.push(name.to_vec());
    }
}

/// The number of events of each kind in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimechartCounts {
    /// Context switches.
    pub switches: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Changes of idle states and frequencies.
    pub power_events: u64,
    /// Entries of and returns from system calls.
    pub call_events: u64,
}

/// CPUs and tasks over time.
#[derive(Debug)]
pub struct Timechart {
    /// The first time of the chart, in nanoseconds.
    pub start: u64,
    /// The last time of the chart, in nanoseconds.
    pub end: u64,
    /// The grid of all timelines: short states are merged to its cells.
    pub grid: TimeGrid,
    /// CPUs by number.
    pub cpus: BTreeMap<u32, CpuLane>,
    /// Tasks, by [`TaskIndex`].
    pub tasks: Vec<TaskLane>,
    /// Wakeups of tasks by other tasks, in order of time. Of those with the same waker and woken task, only the first in each
    /// cell is kept, or in each group of cells if there are many wakeups.
    pub wakeups: Vec<Wakeup>,
    /// The stacks with which tasks were switched out, by [`StackId`].
    pub stacks: Vec<StackChain>,
    /// The stretches of time in which records were lost.
    pub losses: LostStretches,
    /// The number of events of each kind.
    pub counts: TimechartCounts,
    /// The numbers of matched and unmatched entries and returns of system calls.
    pub call_counts: SpanCounts,
}
