//! The activity of each task of a recording, as steps that threads can repeat, for `sched replay`.
//!
//! ```text
//! switch out (S, D, ...) ... wakeup by a task        Await(n) of the woken task, Wake(n) of the waker
//! switch out (S, D, ...) ... wakeup by an interrupt  Sleep(time)
//! switch in ... switch out                           Run(time)
//! ```
//!
//! Preemption is not a step: the scheduler under test decides when to preempt a thread.

use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};
use rustc_hash::FxHashMap;

use super::tasks::{SchedTasks, TaskIndex, entry};
use super::{LostStretches, ignored_wakeup};
use crate::{EventContext, EventLayouts, Loss, Observer, TaskChange};

/// A step of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayStep {
    /// Runs for this many nanoseconds.
    Run(u64),
    /// Sleeps for this many nanoseconds.
    Sleep(u64),
    /// Sleeps until another task makes the wakeup with this number.
    Await(u32),
    /// Wakes a task.
    Wake {
        /// The number of the wakeup.
        number: u32,
        /// The index of the task in [`ReplayPlan::tasks`].
        task: usize,
    },
}

/// A task with its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayTask {
    /// Thread id; 0 for the idle tasks, which have no steps.
    pub tid: i32,
    /// Its latest name.
    pub comm: Vec<u8>,
    /// The number of its runs, its sleeps and the wakeups that it made, counted as by Linux perf.
    pub events: u64,
    /// The steps, in order.
    pub steps: Vec<ReplayStep>,
}

/// The steps of all tasks. Wakeups that a task waits for are numbered in order of time. Each task makes and awaits them in this
/// order, so that the replaying threads cannot deadlock.
#[derive(Debug, Default)]
pub struct ReplayPlan {
    /// The tasks, in order of their first events.
    pub tasks: Vec<ReplayTask>,
    /// The number of wakeups that tasks wait for.
    pub wakeups: u32,
    /// The numbers of events in the recording.
    pub counts: ReplayCounts,
    /// The stretches of time in which records were lost.
    pub losses: LostStretches,
}

impl ReplayPlan {
    /// Returns the largest sum of run and sleep times of a task in nanoseconds. A replay takes at least this long.
    #[must_use]
    pub fn longest_task_nanos(&self) -> u64 {
        let time = |step: &ReplayStep| match step {
            ReplayStep::Run(nanos) | ReplayStep::Sleep(nanos) => *nanos,
            ReplayStep::Await(_) | ReplayStep::Wake { .. } => 0,
        };
        let tasks = self.tasks.iter();
        let times = tasks.map(|task| task.steps.iter().map(time).fold(0, u64::saturating_add));
        times.max().unwrap_or_default()
    }
}

/// Numbers of events, counted as by Linux perf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReplayCounts {
    /// Runs: one per switch.
    pub runs: u64,
    /// Sleeps: one per switch, and one at the start of each task.
    pub sleeps: u64,
    /// Wakeups.
    pub wakeups: u64,
    /// Wakeups of tasks whose latest counted event is not a sleep.
    pub targetless: u64,
    /// Further wakeups of the same sleep.
    pub repeated: u64,
}

/// The current state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Sleeping since this time.
    Sleeping(u64),
    /// Running or runnable.
    Awake,
}

/// The latest event that perf counts for a task; never a run, since a sleep follows each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatestEvent {
    /// A sleep without a wakeup yet. perf counts a sleep at each switch-out, even of a runnable task.
    Sleep,
    /// A sleep for which a wakeup was counted.
    SleepWithWakeup,
    /// A wakeup that the task made.
    Wakeup,
}

/// The state of a task while the recording is read.
#[derive(Debug)]
struct PlannedTask {
    activity: Activity,
    latest: LatestEvent,
    /// Its place: its index in [`ReplayPlan::tasks`]; `None` before its first event.
    place: Option<usize>,
}

impl Default for PlannedTask {
    fn default() -> Self {
        Self {
            activity: Activity::Sleeping(0),
            latest: LatestEvent::Sleep,
            place: None,
        }
    }
}

/// Collects the steps of all tasks.
#[derive(Debug)]
pub struct ReplayRecorder {
    /// The tracepoint whose events are ignored, because another one reports the same wakeups.
    ignored: Option<&'static str>,
    tasks: SchedTasks,
    states: Vec<PlannedTask>,
    /// The index in `tasks` of each task of the plan, by place.
    indices: Vec<TaskIndex>,
    plan: ReplayPlan,
    /// By CPU, the time up to which run time was added to a task's steps; absent before the CPU's first switch.
    run_until: FxHashMap<u32, u64>,
    /// The time of the first event.
    start: Option<u64>,
}

impl ReplayRecorder {
    /// Creates a recorder for a recording with these events.
    #[must_use]
    pub fn new(layouts: &EventLayouts) -> Self {
        Self {
            ignored: ignored_wakeup(layouts),
            tasks: SchedTasks::new(),
            states: Vec::new(),
            indices: Vec::new(),
            plan: ReplayPlan::default(),
            run_until: FxHashMap::default(),
            start: None,
        }
    }

    /// Returns the plan, with the latest names of the tasks.
    #[must_use]
    pub fn finish(mut self) -> ReplayPlan {
        for (task, index) in self.plan.tasks.iter_mut().zip(self.indices) {
            task.comm = self.tasks.get(index).comm.clone();
        }
        self.plan
    }

    /// Returns the task with this thread id, and its place in the plan, to which it is added if it is new.
    fn task(&mut self, tid: i32) -> (TaskIndex, usize) {
        let index = self.tasks.find_or_add(super::UNKNOWN_PID, tid);
        let new_place = self.plan.tasks.len();
        let place = *entry(&mut self.states, index)
            .place
            .get_or_insert(new_place);
        if place == new_place {
            self.indices.push(index);
            // As in perf, each task begins with a sleep.
            self.plan.counts.sleeps += 1;
            self.plan.tasks.push(ReplayTask {
                tid,
                comm: Vec::new(),
                events: 1,
                steps: Vec::new(),
            });
        }
        (index, place)
    }

    /// Adds a step, or extends the last one if both are runs. Drops steps of length 0, and all steps of idle
    /// tasks: there is one on each CPU, all with thread id 0, so they run at the same time.
    fn add(&mut self, place: usize, step: ReplayStep) {
        let Some(task) = self.plan.tasks.get_mut(place) else {
            return;
        };
        match (step, task.steps.last_mut()) {
            _ if task.tid == 0 => {}
            (ReplayStep::Run(0) | ReplayStep::Sleep(0), _) => {}
            (ReplayStep::Run(more), Some(ReplayStep::Run(nanos))) => {
                *nanos = nanos.saturating_add(more);
            }
            _ => task.steps.push(step),
        }
    }

    /// Counts an event of the task at `place`.
    fn count(&mut self, place: usize) {
        if let Some(task) = self.plan.tasks.get_mut(place) {
            task.events += 1;
        }
    }

    /// If a task sleeps, ends its sleep and adds a [`ReplayStep::Sleep`] of the recorded length.
    fn wake_up(&mut self, index: TaskIndex, place: usize, time: u64) {
        // A task sleeps before its first event (`since` is 0): this sleep begins at the first event of the recording.
        let start = self.start.unwrap_or(time);
        let state = entry(&mut self.states, index);
        if let Activity::Sleeping(since) = state.activity {
            state.activity = Activity::Awake;
            let nanos = time.saturating_sub(since.max(start));
            self.add(place, ReplayStep::Sleep(nanos));
        }
    }

    fn switch(&mut self, time: u64, cpu: u32, event: &SchedSwitch<'_>) {
        let from = self.run_until.insert(cpu, time);
        let nanos = from.map_or(0, |from| time.saturating_sub(from));
        let (prev, prev_place) = self.task(event.prev_pid());
        // The task was awake while it ran, even if its switch-in was not recorded.
        self.wake_up(prev, prev_place, time.saturating_sub(nanos));
        self.add(prev_place, ReplayStep::Run(nanos));
        let state = entry(&mut self.states, prev);
        state.latest = LatestEvent::Sleep;
        if !event.prev_state().is_runnable() {
            state.activity = Activity::Sleeping(time);
        }
        self.plan.counts.runs += 1;
        self.plan.counts.sleeps += 1;
        // The run and the sleep.
        self.count(prev_place);
        self.count(prev_place);
        let (next, next_place) = self.task(event.next_pid());
        self.wake_up(next, next_place, time);
    }

    fn wake(&mut self, at: &EventContext, event: &SchedWakeup<'_>) {
        if Some(event.tracepoint()) == self.ignored {
            return;
        }
        let time = at.time();
        let (waker, waker_place) = self.task(at.task.tid.cast_signed());
        let (woken, woken_place) = self.task(event.pid());
        self.count_wakeup(waker, waker_place, woken);
        // The idle task wakes others only in interrupts; a waker that has exited has the id -1.
        let is_by_other_task =
            at.task.tid.cast_signed() > 0 && !event.is_by_interrupt() && waker_place != woken_place;
        let is_asleep = entry(&mut self.states, woken).activity != Activity::Awake;
        if !is_asleep || !is_by_other_task || event.pid() == 0 || self.plan.wakeups == u32::MAX {
            self.wake_up(woken, woken_place, time);
            return;
        }
        // The run time of the waker that is not in its steps yet.
        let until = at.cpu.and_then(|cpu| self.run_until.get_mut(&cpu));
        let nanos = until.map_or(0, |until| {
            time.saturating_sub(std::mem::replace(until, time))
        });
        // The waker is awake, even if its switch-in was not recorded.
        self.wake_up(waker, waker_place, time.saturating_sub(nanos));
        self.add(waker_place, ReplayStep::Run(nanos));
        let number = self.plan.wakeups;
        self.plan.wakeups += 1;
        entry(&mut self.states, woken).activity = Activity::Awake;
        self.add(woken_place, ReplayStep::Await(number));
        let task = woken_place;
        self.add(waker_place, ReplayStep::Wake { number, task });
    }

    fn count_wakeup(&mut self, waker: TaskIndex, waker_place: usize, woken: TaskIndex) {
        self.count(waker_place);
        let counts = &mut self.plan.counts;
        counts.wakeups += 1;
        entry(&mut self.states, waker).latest = LatestEvent::Wakeup;
        let latest = &mut entry(&mut self.states, woken).latest;
        match latest {
            LatestEvent::Sleep => *latest = LatestEvent::SleepWithWakeup,
            LatestEvent::SleepWithWakeup => counts.repeated += 1,
            LatestEvent::Wakeup => counts.targetless += 1,
        }
    }
}

impl Observer for ReplayRecorder {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, (): ()) {
        self.plan.losses.event(at);
        self.start.get_or_insert(at.time());
        match (event, at.cpu) {
            (TypedEvent::SchedSwitch(event), Some(cpu)) => self.switch(at.time(), cpu, &event),
            (TypedEvent::SchedWakeup(event), _) => self.wake(at, &event),
            _ => {}
        }
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        self.tasks.change(&change);
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.plan.losses.lost(at, loss);
    }
}
