//! The run time of each task, and how long it waited for a CPU after it became runnable, for `sched latency`.

mod antagonists;
mod run_queues;
mod table;

use rperf_tracepoint::typed::{SchedMigrateTask, SchedSwitch, SchedWakeup, TypedEvent};

use self::antagonists::ChargeSums;
pub use self::antagonists::{Antagonist, AntagonistTime, Antagonists};
use self::run_queues::{Charge, RunQueues, Wakeup};
pub use self::table::{LatencyRow, LatencySortKey, LatencyTable};
use super::tasks::{SchedTasks, TaskIndex, entry};
use super::{LostStretches, UNKNOWN_PID, ignored_wakeup};
use crate::cpu_table::CpuTable;
use crate::{EventContext, EventLayouts, LogHistogram, Loss, Observer, TaskChange};

/// Measures the run times and the delays of all tasks; a delay is the length of a wait. The result is a [`LatencyTable`].
#[derive(Debug)]
pub struct SchedLatency {
    options: LatencyOptions,
    /// The wakeup tracepoint that is ignored because another one reports the same wakeups.
    ignored: Option<&'static str>,
    tasks: SchedTasks,
    /// By [`TaskIndex`].
    latencies: Vec<TaskLatency>,
    /// The thread id of the task that was last switched in on each CPU.
    last_switched_in: CpuTable<i32>,
    /// The waiting tasks and the tasks that run during their waits, if requested.
    queues: Option<RunQueues>,
    checks: LatencyChecks,
    losses: LostStretches,
}

/// What [`SchedLatency`] counts and keeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct LatencyOptions {
    /// Only run times on this CPU, and delays that end with a switch on it; `None` for all CPUs.
    pub cpu: Option<u32>,
    /// Whether the distribution of each task's delays is kept.
    pub with_distributions: bool,
    /// Whether the tasks that run on a CPU while others wait for it are recorded.
    pub with_antagonists: bool,
}

/// Counts of inconsistencies in the recording, and of the wakeups that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencyChecks {
    /// Wakeups of sleeping tasks.
    pub wakeups: u64,
    /// Those of `wakeups` whose time is before that of the switch that put the task to sleep.
    pub unordered_wakeups: u64,
    /// Switches away from a task that was not the last one switched in on that CPU.
    pub mismatched_switches: u64,
}

#[derive(Debug, Default)]
struct TaskLatency {
    /// Whether an event of the task was seen. As in perf, a task whose first event is not its switch-out counts as switched out
    /// at that event: asleep if the event is a wakeup, otherwise runnable, even if it is running.
    is_seen: bool,
    state: WaitState,
    /// When it was last switched out.
    switched_out: u64,
    /// When it became runnable.
    runnable_since: u64,
    sums: LatencySums,
    /// Which tasks ran during its waits, and how long; empty unless requested.
    charges: ChargeSums,
}

/// The state of a task since it was last switched out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WaitState {
    #[default]
    Sleeping,
    Runnable,
    /// The task was switched in after [`WaitState::Runnable`]. A task that is switched in without a wakeup remains
    /// [`WaitState::Sleeping`].
    SwitchedIn,
}

/// The run time and the waits of a task, or of several tasks together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencySums {
    /// Nanoseconds of run time, from `sched_stat_runtime`.
    pub runtime: u64,
    /// The number of waits that ended with a switch.
    pub switches: u64,
    /// Nanoseconds of all waits.
    pub delay: u64,
    /// Nanoseconds of the longest wait.
    pub max_delay: u64,
    /// When the longest wait began; 0 if no wait took any time.
    pub max_start: u64,
    /// When the longest wait ended; 0 if no wait took any time.
    pub max_end: u64,
    /// The distribution of the waits; empty unless requested.
    pub delays: LogHistogram,
    /// The tasks that ran during the waits; empty unless requested.
    pub antagonists: Antagonists,
}

impl LatencySums {
    fn add_delay(&mut self, from: u64, to: u64, with_distribution: bool) {
        let delay = to - from;
        self.switches += 1;
        self.delay = self.delay.saturating_add(delay);
        if delay > self.max_delay {
            self.max_delay = delay;
            self.max_start = from;
            self.max_end = to;
        }
        if with_distribution {
            self.delays.add(delay);
        }
    }

    /// Adds the run time and the waits of other tasks.
    fn merge(&mut self, other: &Self) {
        self.runtime = self.runtime.saturating_add(other.runtime);
        self.switches += other.switches;
        self.delay = self.delay.saturating_add(other.delay);
        if self.max_delay < other.max_delay {
            self.max_delay = other.max_delay;
            self.max_start = other.max_start;
            self.max_end = other.max_end;
        }
        self.delays.merge(&other.delays);
        self.antagonists.merge(&other.antagonists);
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
    /// Creates an analysis of a recording with these events.
    #[must_use]
    pub fn new(layouts: &EventLayouts, options: LatencyOptions) -> Self {
        Self {
            options,
            ignored: ignored_wakeup(layouts),
            tasks: SchedTasks::new(),
            latencies: Vec::new(),
            last_switched_in: CpuTable::default(),
            queues: options.with_antagonists.then(RunQueues::default),
            checks: LatencyChecks::default(),
            losses: LostStretches::default(),
        }
    }

    /// Returns the latencies of the task with this thread id; adds the task if there is none.
    fn latency(&mut self, tid: i32) -> &mut TaskLatency {
        let index = self.tasks.find_or_add(UNKNOWN_PID, tid);
        entry(&mut self.latencies, index)
    }

    /// Whether the options select the CPU of an event.
    fn is_counted(&self, at: &EventContext) -> bool {
        self.options.cpu.is_none() || self.options.cpu == at.cpu
    }

    fn switch(&mut self, at: &EventContext, event: &SchedSwitch<'_>) {
        let (prev_tid, next_tid) = (event.prev_pid(), event.next_pid());
        if let Some(cpu) = at.cpu {
            let before = self.last_switched_in.insert(cpu, next_tid);
            let is_mismatch = before.is_some_and(|before| before != prev_tid);
            self.checks.mismatched_switches += u64::from(is_mismatch);
        }
        let time = at.time();
        let prev_is_runnable = event.prev_state().is_runnable();
        let charges = self.queue_switch(at, event);
        self.latency(prev_tid).switch_out(time, prev_is_runnable);
        let is_counted = self.is_counted(at);
        let with_distribution = self.options.with_distributions;
        let next = self.latency(next_tid);
        if !next.is_seen {
            let was_runnable = true;
            next.switch_out(time, was_runnable);
        }
        if next.state != WaitState::Runnable {
            return;
        }
        next.state = WaitState::SwitchedIn;
        if time >= next.runnable_since && is_counted {
            let since = next.runnable_since;
            next.sums.add_delay(since, time, with_distribution);
            next.charges.add(charges);
        }
    }

    /// Passes a switch to the run queues, if they are requested. Returns the charges of the wait that the switch ends: which
    /// tasks ran, and how long, while the task that is switched in waited.
    fn queue_switch(&mut self, at: &EventContext, event: &SchedSwitch<'_>) -> Vec<Charge> {
        let Some(queues) = &mut self.queues else {
            return Vec::new();
        };
        let time = at.time();
        let prev = self.tasks.find_or_add(UNKNOWN_PID, event.prev_pid());
        let next = self.tasks.find_or_add(UNKNOWN_PID, event.next_pid());
        if let Some(cpu) = at.cpu {
            queues.switch(cpu, prev, next, time);
        }
        let charges = queues.end(next, time);
        // A wait of `prev` that is still open is not counted: its switch-in was not seen.
        queues.end(prev, time);
        if event.prev_state().is_runnable() && event.prev_pid() != 0 {
            queues.begin(prev, at.cpu, time);
        }
        charges
    }

    fn wake(&mut self, at: &EventContext, event: &SchedWakeup<'_>) {
        if Some(event.tracepoint()) == self.ignored {
            return;
        }
        let time = at.time();
        let task = self.latency(event.pid());
        if !task.is_seen {
            let was_runnable = false;
            task.switch_out(time, was_runnable);
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
        if let Some(queues) = self.queues.as_mut().filter(|_| !is_unordered) {
            let index = self.tasks.find_or_add(UNKNOWN_PID, event.pid());
            let target_cpu = event.target_cpu().map(i32::cast_unsigned);
            queues.wake(index, target_cpu, at.cpu, time);
        }
    }

    fn migrate(&mut self, time: u64, event: &SchedMigrateTask<'_>, just_woken: Option<Wakeup>) {
        if let Some(queues) = &mut self.queues {
            let task = self.tasks.find_or_add(UNKNOWN_PID, event.pid());
            let cpu = event.dest_cpu().cast_unsigned();
            queues.migrate(task, cpu, just_woken, time);
        }
    }

    /// Returns the table of the tasks that waited, without idle tasks, sorted by `keys`. If `merge_names`, tasks of one name
    /// share a row.
    #[must_use]
    pub fn finish(self, merge_names: bool, keys: &[LatencySortKey]) -> LatencyTable {
        let latencies = self.latencies.into_iter().enumerate();
        let mut rows: Vec<LatencyRow> = latencies
            .filter(|(_, task)| task.is_seen)
            .filter_map(|(index, mut task)| {
                if self.options.with_antagonists {
                    let delay = task.sums.delay;
                    let charges = &task.charges;
                    task.sums.antagonists = charges.antagonists(&self.tasks, merge_names, delay);
                }
                LatencyRow::new(&self.tasks, TaskIndex::nth(index), task.sums)
            })
            .collect();
        table::merge_and_sort(&mut rows, merge_names, keys);
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
        let queues = self.queues.as_mut();
        // Every event removes the last wakeup of its CPU, so a migration gets only a wakeup that is the event directly before it.
        // If both are of the same task, the kernel chose the CPU during the wakeup, and the whole wait is for the new CPU.
        let just_woken = queues.and_then(|queues| queues.take_just_woken(at.cpu));
        match event {
            TypedEvent::SchedSwitch(event) => self.switch(at, &event),
            TypedEvent::SchedWakeup(event) => self.wake(at, &event),
            TypedEvent::SchedMigrateTask(event) => self.migrate(at.time(), &event, just_woken),
            TypedEvent::SchedStatRuntime(event) => {
                let (time, is_counted) = (at.time(), self.is_counted(at));
                let task = self.latency(event.pid());
                if !task.is_seen {
                    let was_runnable = true;
                    task.switch_out(time, was_runnable);
                }
                if is_counted {
                    task.sums.runtime = task.sums.runtime.saturating_add(event.runtime());
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
