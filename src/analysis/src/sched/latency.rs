//! The run time of each task, and how long it waited for a CPU after it became runnable, for `sched latency`.

mod table;

use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};
use rustc_hash::FxHashMap;

pub use self::table::{LatencyRow, LatencySortKey, LatencyTable};
use super::tasks::{SchedTasks, TaskIndex, entry};
use super::{LostStretches, ignored_wakeup};
use crate::{EventContext, EventLayouts, LogHistogram, Loss, Observer, TaskChange};

/// The delays of all tasks. The result is a [`LatencyTable`].
#[derive(Debug)]
pub struct SchedLatency {
    options: LatencyOptions,
    /// The tracepoint that reports a wakeup a second time.
    ignored: Option<&'static str>,
    tasks: SchedTasks,
    latencies: Vec<TaskLatency>,
    /// The task on each CPU after its last switch.
    current: FxHashMap<u32, i32>,
    checks: LatencyChecks,
    losses: LostStretches,
}

/// What is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct LatencyOptions {
    /// Only run times and delays on this CPU.
    pub cpu: Option<u32>,
    /// Whether the distribution of each task's delays is kept.
    pub with_distributions: bool,
}

/// Counts of inconsistencies in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyChecks {
    /// Wakeups of sleeping tasks.
    pub wakeups: u64,
    /// Wakeups before the switch that put the task to sleep.
    pub unordered_wakeups: u64,
    /// Switches away from a task that was not the last one switched in on that CPU.
    pub mismatched_switches: u64,
}

/// The sums of one task.
#[derive(Debug, Default)]
struct TaskLatency {
    is_seen: bool,
    state: WaitState,
    /// When it was last switched out.
    switched_out: u64,
    /// When it became runnable.
    runnable_since: u64,
    sums: LatencySums,
}

/// What a task does since it was last switched out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WaitState {
    #[default]
    Sleeping,
    Runnable,
    SwitchedIn,
}

/// Sums over the waits of a task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencySums {
    /// Nanoseconds of run time, from `sched_stat_runtime`.
    pub runtime: u64,
    /// The number of waits.
    pub switches: u64,
    /// Nanoseconds of all waits.
    pub delay: u64,
    /// Nanoseconds of the longest wait.
    pub max_delay: u64,
    /// When the longest wait began; 0 if all have no length.
    pub max_start: u64,
    /// When the longest wait ended.
    pub max_end: u64,
    /// The distribution of the waits; empty unless requested.
    pub delays: LogHistogram,
}

impl LatencySums {
    fn add_delay(&mut self, from: u64, to: u64, with_distribution: bool) {
        let delay = to - from;
        self.switches += 1;
        self.delay += delay;
        if delay > self.max_delay {
            self.max_delay = delay;
            self.max_start = from;
            self.max_end = to;
        }
        if with_distribution {
            self.delays.add(delay);
        }
    }

    /// Adds the waits of another task.
    fn merge(&mut self, other: &Self) {
        self.runtime += other.runtime;
        self.switches += other.switches;
        self.delay += other.delay;
        if self.max_delay < other.max_delay {
            self.max_delay = other.max_delay;
            self.max_start = other.max_start;
            self.max_end = other.max_end;
        }
        self.delays.merge(&other.delays);
    }

    /// Returns the average wait in nanoseconds, rounded down; 0 without waits.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.delay.checked_div(self.switches).unwrap_or_default()
    }
}

impl TaskLatency {
    fn switch_out(&mut self, time: u64, is_runnable: bool) {
        self.is_seen = true;
        self.switched_out = time;
        self.state = WaitState::Sleeping;
        if is_runnable {
            self.state = WaitState::Runnable;
            self.runnable_since = time;
        }
    }
}

impl SchedLatency {
    /// Creates it for a recording with these events.
    #[must_use]
    pub fn new(layouts: &EventLayouts, options: LatencyOptions) -> Self {
        Self {
            options,
            ignored: ignored_wakeup(layouts),
            tasks: SchedTasks::new(),
            latencies: Vec::new(),
            current: FxHashMap::default(),
            checks: LatencyChecks::default(),
            losses: LostStretches::default(),
        }
    }

    fn latency(&mut self, tid: i32) -> &mut TaskLatency {
        let index = self.tasks.find_or_add(-1, tid);
        entry(&mut self.latencies, index)
    }

    fn is_counted(&self, at: &EventContext) -> bool {
        self.options.cpu.is_none() || self.options.cpu == at.cpu
    }

    fn switch(&mut self, at: &EventContext, event: &SchedSwitch<'_>) {
        let (prev, next) = (event.prev_pid(), event.next_pid());
        if let Some(cpu) = at.cpu {
            let before = self.current.insert(cpu, next);
            let is_mismatch = before.is_some_and(|before| before != prev);
            self.checks.mismatched_switches += u64::from(is_mismatch);
        }
        let time = at.time();
        let is_runnable = event.prev_state().is_runnable();
        self.latency(prev).switch_out(time, is_runnable);
        let is_counted = self.is_counted(at);
        let with_distribution = self.options.with_distributions;
        let next = self.latency(next);
        if !next.is_seen {
            next.switch_out(time, true);
        }
        if next.state != WaitState::Runnable {
            return;
        }
        next.state = WaitState::SwitchedIn;
        if time >= next.runnable_since && is_counted {
            let since = next.runnable_since;
            next.sums.add_delay(since, time, with_distribution);
        }
    }

    fn wake(&mut self, time: u64, event: &SchedWakeup<'_>) {
        if Some(event.tracepoint()) == self.ignored {
            return;
        }
        let task = self.latency(event.pid());
        if !task.is_seen {
            task.switch_out(time, false);
        }
        if task.state != WaitState::Sleeping {
            return;
        }
        let is_unordered = task.switched_out > time;
        if !is_unordered {
            task.state = WaitState::Runnable;
            task.runnable_since = time;
        }
        self.checks.wakeups += 1;
        self.checks.unordered_wakeups += u64::from(is_unordered);
    }

    /// Returns the table of all tasks.
    #[must_use]
    pub fn finish(self, merge_names: bool, keys: &[LatencySortKey]) -> LatencyTable {
        let seen = self.latencies.into_iter().enumerate();
        let mut rows: Vec<LatencyRow> = seen
            .filter(|(_, task)| task.is_seen)
            .filter_map(|(index, task)| {
                LatencyRow::new(&self.tasks, TaskIndex::nth(index), task.sums)
            })
            .collect();
        table::sort(&mut rows, merge_names, keys);
        LatencyTable {
            rows,
            checks: self.checks,
            losses: self.losses,
        }
    }
}

impl Observer for SchedLatency {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, (): ()) {
        self.losses.event(at);
        match event {
            TypedEvent::SchedSwitch(event) => self.switch(at, &event),
            TypedEvent::SchedWakeup(event) => self.wake(at.time(), &event),
            TypedEvent::SchedStatRuntime(event) => {
                let (time, is_counted) = (at.time(), self.is_counted(at));
                let task = self.latency(event.pid());
                if !task.is_seen {
                    task.switch_out(time, true);
                }
                if is_counted {
                    task.sums.runtime += event.runtime();
                }
            }
            _ => {}
        }
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        self.tasks.change(&change);
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}
