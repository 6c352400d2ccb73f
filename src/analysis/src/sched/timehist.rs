//! How long each task waited, was delayed and ran between two switches, for `sched timehist`.

mod idle;
mod summary;
mod times;

use rperf_replay::FoldControl;
use rperf_tracepoint::typed::{SchedMigrateTask, SchedSwitch, SchedWakeup, TypedEvent};
use rustc_hash::FxHashMap;

use self::idle::IdleCpus;
pub use self::summary::{CpuIdle, IdleStack, TimeSummary};
use self::times::AwayState;
pub use self::times::{RunStatistics, StretchTimes, TaskTimes, TimedTask, WaitTimes};
use super::tasks::{SchedTask, SchedTasks, TaskIndex, entry};
use super::{LostStretches, ignored_wakeup};
use crate::{EventContext, EventLayouts, Loss, Observer, Sleep, SwitchedOut, TaskChange};

/// Options of a [`TimeHistory`]. A list that is `None` selects all.
#[derive(Debug, Clone, Default)]
pub struct TimeHistoryOptions {
    /// Start of the time range in nanoseconds; 0 for no limit. Stretches, the times between two switches of a CPU, are clipped to
    /// the range.
    pub start: u64,
    /// End of the time range in nanoseconds; 0 for no limit.
    pub end: u64,
    /// Only these CPUs.
    pub cpus: Option<Vec<u32>>,
    /// Only these processes.
    pub pids: Option<Vec<i32>>,
    /// Only these threads.
    pub tids: Option<Vec<i32>>,
    /// Only tasks whose priority is in one of these inclusive ranges, or unknown.
    pub priorities: Option<Vec<(i32, i32)>>,
    /// Whether only idle times are counted.
    pub idle_only: bool,
    /// Whether wakeups are shown.
    pub with_wakeups: bool,
    /// Whether migrations are counted and shown; as in perf, also those outside the time range.
    pub with_migrations: bool,
    /// Whether the part of each wait before the task's first migration is measured (`--pre-migrations`).
    pub with_pre_migration_times: bool,
    /// The number of CPUs of the machine.
    pub cpu_count: u32,
}

/// A line of the history.
#[derive(Debug)]
pub struct TimeRow<'r> {
    /// The time in nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// The task of the event; the idle task has tid 0.
    pub task: &'r SchedTask,
    /// The event.
    pub event: TimeEvent<'r>,
}

/// An event of the history.
#[derive(Debug)]
pub enum TimeEvent<'r> {
    /// The task was switched out.
    SwitchedOut {
        /// The times of the stretch that ends.
        times: &'r StretchTimes,
        /// The task's state as the kernel's letter; `I` for the idle task.
        state: char,
        /// The task's priority.
        priority: i32,
        /// Name of the next task.
        next_comm: &'r [u8],
        /// Thread id of the next task.
        next_tid: i32,
        /// The stack of the task as text; empty for the idle task.
        stack: &'r str,
    },
    /// The task woke another.
    Woke(&'r SchedTask),
    /// The task moved a task to another CPU.
    Migrated {
        /// The moved task.
        task: &'r SchedTask,
        /// The CPU that it leaves.
        from: i32,
        /// Its new CPU.
        to: i32,
    },
}

/// Receives the rows. The results determine whether reading continues.
pub trait TimeRows {
    /// Receives a row.
    fn row(&mut self, row: &TimeRow<'_>) -> FoldControl;
    /// Receives the loss of `records` records, with its time in nanoseconds, and its CPU if known.
    fn lost(&mut self, time: u64, cpu: Option<u32>, records: u64) -> FoldControl;
}

/// Passes rows to a [`TimeRows`], and sums up the times of tasks.
#[derive(Debug)]
pub struct TimeHistory<R> {
    options: TimeHistoryOptions,
    rows: R,
    /// The tracepoint whose events are ignored, because another one reports the same wakeups.
    ignored_event: Option<&'static str>,
    tasks: SchedTasks,
    /// By [`TaskIndex`].
    times: Vec<TaskTimes>,
    idle: IdleCpus,
    /// The idle task, named `<idle>`.
    idle_task: SchedTask,
    /// Time of the last switch, by CPU.
    last_switch: FxHashMap<u32, u64>,
    /// Time of the first switch not before the start of the time range; 0 if there was none yet.
    first: u64,
    /// Time of the last switch not after the end of the time range; 0 if there was none yet. If a counted stretch extends beyond
    /// the end of the range, the switch at its end counts as one at the end of the range.
    last: u64,
    /// Number of events of excluded tasks; an event of two excluded tasks counts twice.
    skipped: u64,
    flow: FoldControl,
    /// Where records of the recording were lost.
    losses: LostStretches,
}

/// A stretch between two switches of a CPU; `from` is 0 if unknown.
#[derive(Clone, Copy)]
struct RunSpan {
    cpu: u32,
    from: u64,
    to: u64,
}

impl<R: TimeRows> TimeHistory<R> {
    /// Creates a history of a recording with these events.
    pub fn new(layouts: &EventLayouts, options: TimeHistoryOptions, rows: R) -> Self {
        let tasks = SchedTasks::new();
        Self {
            idle: IdleCpus::new(options.cpu_count),
            options,
            rows,
            ignored_event: ignored_wakeup(layouts),
            idle_task: SchedTask::idle(),
            tasks,
            times: Vec::new(),
            last_switch: FxHashMap::default(),
            first: 0,
            last: 0,
            skipped: 0,
            flow: FoldControl::Continue,
            losses: LostStretches::default(),
        }
    }

    /// Returns the receiver of rows, the sums, and where records were lost.
    pub fn finish(self) -> (R, TimeSummary, LostStretches) {
        let (mut running, mut terminated) = (Vec::new(), Vec::new());
        for index in self.tasks.in_listing_order() {
            let task = self.tasks.get(index);
            let Some(times) = self.times.get(index.get()) else {
                continue;
            };
            if times.runs.count == 0 || self.options.excludes(task, times) {
                continue;
            }
            let timed = TimedTask {
                task: task.clone(),
                times: times.clone(),
            };
            match task.is_dead {
                true => terminated.push(timed),
                false => running.push(timed),
            }
        }
        let (idle, cpu_count) = self.idle.finish(self.options.cpus.as_deref());
        let summary = TimeSummary {
            running,
            terminated,
            idle,
            duration: self.last.saturating_sub(self.first),
            cpu_count,
            skipped: self.skipped,
        };
        (self.rows, summary, self.losses)
    }

    /// Returns the task of a sample, which is added if it is new. For samples of tasks that have exited it is the task with the
    /// id -1.
    fn sampled_task(&mut self, at: &EventContext) -> TaskIndex {
        let (pid, tid) = (at.task.pid.cast_signed(), at.task.tid.cast_signed());
        self.tasks.find_or_add(pid, tid)
    }

    /// Whether switches on a CPU are shown. Wakeups and migrations are shown for all CPUs, as in perf.
    fn shows_switches(&self, cpu: u32) -> bool {
        let cpus = self.options.cpus.as_ref();
        cpus.is_none_or(|cpus| cpus.contains(&cpu))
    }

    /// Whether the options exclude a task, which then counts as skipped.
    fn skips(&mut self, index: TaskIndex) -> bool {
        let times = entry(&mut self.times, index);
        let is_excluded = self.options.excludes(self.tasks.get(index), times);
        self.skipped += u64::from(is_excluded);
        is_excluded
    }

    /// Whether an event of two tasks is hidden, because neither of them is shown. Excluded tasks count as skipped, `other` only
    /// if `by` is not shown.
    fn hides(&mut self, by: TaskIndex, other: TaskIndex) -> bool {
        let hides_by = self.skips(by) || self.options.idle_only;
        hides_by && (self.skips(other) || self.options.idle_only)
    }

    fn switch(&mut self, at: &EventContext, cpu: u32, event: &SchedSwitch<'_>, stack: &str) {
        self.learn_priority(event.next_pid(), event.next_prio());
        let to = at.time();
        let from = self.last_switch.insert(cpu, to).unwrap_or_default();
        let clipped_time = match event.prev_pid() {
            0 => self.idle_switch(RunSpan { cpu, from, to }, event),
            _ => self.task_switch(at, RunSpan { cpu, from, to }, event, stack),
        };
        if self.first == 0 && clipped_time >= self.options.start {
            self.first = clipped_time;
        }
        if self.options.end == 0 || clipped_time <= self.options.end {
            self.last = clipped_time;
        }
    }

    /// Notes the priority of a task other than the idle task, if tasks are selected by priority. If the task is new, it is added
    /// without a process id.
    fn learn_priority(&mut self, tid: i32, priority: i32) {
        if tid != 0 && self.options.priorities.is_some() {
            let task = self.tasks.find_or_add(super::UNKNOWN_PID, tid);
            entry(&mut self.times, task).priority = Some(priority);
        }
    }

    /// Handles the switch-out of a task other than the idle task. Returns the time of the switch, or the end of the time range if
    /// the stretch is clipped there and the task is counted.
    fn task_switch(
        &mut self,
        at: &EventContext,
        RunSpan {
            cpu,
            from,
            to: time,
        }: RunSpan,
        event: &SchedSwitch<'_>,
        stack: &str,
    ) -> u64 {
        let index = self.switched_task(at);
        let goes_idle = event.next_pid() == 0;
        self.idle.switch_out(cpu, index, goes_idle.then_some(stack));
        entry(&mut self.times, index).priority = Some(event.prev_prio());
        if self.skips(index) || (self.options.idle_only && !goes_idle) {
            return time;
        }
        let within = self.options.within(from, time);
        if let Some((from, to)) = within
            && !self.options.idle_only
            && self.shows_switches(cpu)
        {
            let times = entry(&mut self.times, index);
            times.add_stretch(from, to);
            let row = TimeRow {
                time: to,
                cpu,
                task: self.tasks.get(index),
                event: switched_out_event(&times.last, event, stack),
            };
            self.flow = self.rows.row(&row);
        }
        entry(&mut self.times, index).switch_out(time, event);
        within.map_or(time, |(_, to)| to)
    }

    /// Returns the task that is switched out: that of the sample. If the sample's thread id is 0, its process id is used instead,
    /// as in perf.
    fn switched_task(&mut self, at: &EventContext) -> TaskIndex {
        // perf looks tasks up three times, in this order, which adds missing ones and sets process ids.
        self.sampled_task(at);
        let (pid, tid) = (at.task.pid.cast_signed(), at.task.tid.cast_signed());
        let index = self
            .tasks
            .find_or_add(pid, if tid == 0 { pid } else { tid });
        // The third time, perf looks up the first thread of the process, which owns the mappings.
        self.tasks.find_or_add(pid, pid);
        index
    }

    /// Handles the switch-out of the idle task. Returns a time as [`TimeHistory::task_switch`] does.
    fn idle_switch(&mut self, span: RunSpan, event: &SchedSwitch<'_>) -> u64 {
        let RunSpan {
            cpu,
            from,
            to: time,
        } = span;
        let idle = self.idle.cpu(cpu);
        idle.times.priority = Some(event.prev_prio());
        if self.options.excludes(&self.idle_task, &idle.times) {
            self.skipped += 1;
            return time;
        }
        let within = self.options.within(from, time);
        let is_cpu_shown = self.shows_switches(cpu);
        let idle = self.idle.cpu(cpu);
        // With `idle_only`, idle time that belongs to no task has no row.
        let mut has_row = is_cpu_shown;
        if let Some((from, to)) = within {
            if is_cpu_shown {
                idle.times.add_stretch(from, to);
            }
            if self.options.idle_only {
                match idle.last_task.take() {
                    None => has_row = false,
                    Some(task) => {
                        let times = entry(&mut self.times, task);
                        times.add_stretch(from, to);
                        // The idle time is in the sums of the task, but is not its last stretch.
                        times.last = StretchTimes::default();
                        idle.add_to_stack(to.saturating_sub(from));
                    }
                }
            }
            if has_row {
                let row = TimeRow {
                    time: to,
                    cpu,
                    task: &self.idle_task,
                    event: switched_out_event(&idle.times.last, event, ""),
                };
                self.flow = self.rows.row(&row);
            }
        }
        idle.times.switch_out(time, event);
        within.map_or(time, |(_, to)| to)
    }

    fn wake(&mut self, at: &EventContext, cpu: u32, event: &SchedWakeup<'_>) {
        if Some(event.tracepoint()) == self.ignored_event {
            return;
        }
        self.learn_priority(event.pid(), event.prio());
        // With process id 0 if that is unknown, as in perf.
        let woken = self.tasks.find_or_add(0, event.pid());
        let times = entry(&mut self.times, woken);
        if times.woken_at == 0 {
            times.woken_at = at.time();
        }
        if !self.options.with_wakeups || !self.options.contains(at.time()) {
            return;
        }
        let waker = self.sampled_task(at);
        if self.hides(waker, woken) {
            return;
        }
        self.flow = self.rows.row(&TimeRow {
            time: at.time(),
            cpu,
            task: self.tasks.get(waker),
            event: TimeEvent::Woke(self.tasks.get(woken)),
        });
    }

    fn migrate(&mut self, at: &EventContext, cpu: u32, event: &SchedMigrateTask<'_>) {
        if !self.options.with_migrations && !self.options.with_pre_migration_times {
            return;
        }
        // With process id 0 if that is unknown, as in perf.
        let migrated = self.tasks.find_or_add(0, event.pid());
        let times = entry(&mut self.times, migrated);
        if times.migrated_at == 0 {
            times.migrated_at = at.time();
        }
        if !self.options.with_migrations {
            return;
        }
        times.migrations += 1;
        let by = self.sampled_task(at);
        if self.hides(by, migrated) {
            return;
        }
        let migration = TimeEvent::Migrated {
            task: self.tasks.get(migrated),
            from: event.orig_cpu(),
            to: event.dest_cpu(),
        };
        self.flow = self.rows.row(&TimeRow {
            time: at.time(),
            cpu,
            task: self.tasks.get(by),
            event: migration,
        });
    }
}

impl TimeHistoryOptions {
    /// Whether a task is excluded.
    fn excludes(&self, task: &SchedTask, times: &TaskTimes) -> bool {
        let lacks = |list: &Option<Vec<i32>>, id: i32| {
            let list = list.as_ref();
            list.is_some_and(|list| !list.contains(&id))
        };
        let is_in = |priority: i32, ranges: &[(i32, i32)]| {
            let mut ranges = ranges.iter();
            ranges.any(|(low, high)| (*low..=*high).contains(&priority))
        };
        let has_other_priority = match (&self.priorities, times.priority) {
            (Some(ranges), Some(priority)) => !is_in(priority, ranges),
            _ => false,
        };
        lacks(&self.pids, task.pid) || lacks(&self.tids, task.tid) || has_other_priority
    }

    /// Clips a stretch to the time range; `None` if it is outside, or if the range has an end and `from` is 0 (unknown).
    fn within(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        if self.start > to {
            return None;
        }
        let from = if from > 0 { from.max(self.start) } else { 0 };
        match self.end {
            0 => Some((from, to)),
            // As in perf, a stretch with an unknown start is excluded: it may have started after the end of the range.
            end if from == 0 || from > end => None,
            end => Some((from, to.min(end))),
        }
    }

    /// Whether a time is in the time range.
    fn contains(&self, time: u64) -> bool {
        time >= self.start && (self.end == 0 || time <= self.end)
    }
}

impl TaskTimes {
    /// Notes that the task is switched out, and forgets its last wakeup and migration.
    fn switch_out(&mut self, time: u64, event: &SchedSwitch<'_>) {
        self.switched_out_at = time;
        self.away = match SwitchedOut::from(event.prev_state()) {
            SwitchedOut::Runnable(_) => AwayState::Runnable,
            SwitchedOut::Sleeping(Sleep::Uninterruptible) => AwayState::Uninterruptible,
            SwitchedOut::Sleeping(_) | SwitchedOut::Dead => AwayState::Sleeping,
        };
        self.woken_at = 0;
        self.migrated_at = 0;
    }
}

fn switched_out_event<'r>(
    times: &'r StretchTimes,
    event: &SchedSwitch<'r>,
    stack: &'r str,
) -> TimeEvent<'r> {
    let state = event.prev_state();
    TimeEvent::SwitchedOut {
        times,
        state: match event.prev_pid() {
            0 => 'I',
            _ if state.is_runnable() => 'R',
            _ => state.to_string().chars().next().unwrap_or('?'),
        },
        priority: event.prev_prio(),
        next_comm: event.next_comm(),
        next_tid: event.next_pid(),
        stack,
    }
}

/// The detail of each event is its stack as text.
impl<R: TimeRows> Observer<String> for TimeHistory<R> {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, stack: String) {
        // Notes the event's time, and is false for a damaged record, which has an impossible CPU number.
        if !self.losses.usable_event(at) {
            return;
        }
        let Some(cpu) = at.cpu.filter(|_| self.flow == FoldControl::Continue) else {
            return;
        };
        self.idle.note_cpu(cpu);
        match event {
            TypedEvent::SchedSwitch(event) => self.switch(at, cpu, &event, &stack),
            TypedEvent::SchedWakeup(event) => self.wake(at, cpu, &event),
            TypedEvent::SchedMigrateTask(event) => self.migrate(at, cpu, &event),
            _ => {}
        }
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        self.tasks.change(&change);
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        let flow = self.rows.lost(at.time(), at.cpu, loss.records);
        if flow == FoldControl::Stop {
            self.flow = flow;
        }
    }

    fn flow(&self) -> FoldControl {
        self.flow
    }
}
