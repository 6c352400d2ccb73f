//! Task states over time, from scheduler tracepoints or context switch records.

mod state;

#[cfg(test)]
mod tests;

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

pub use self::state::{RunState, Sleep, SwitchedOut, WaitReason};
use crate::{ContextSwitch, EventContext, TaskChange};

/// Tracks the states of tasks, and reports a state when it ends.
///
/// ```text
///          wakeup_new             switch                switch: S, D, T, ...
///   New ---------------> Runnable -------> Running -------------------------> Sleeping
///                           ^                 | switch: R, R+                     |
///                           +-----------------+                                   |
///                           +---------------------------- waking, wakeup ---------+
/// ```
///
/// Fed by `sched_switch`, `sched_waking` or `sched_wakeup` (if both, the earlier one counts), `sched_wakeup_new`,
/// `sched_migrate_task`, `sched_process_fork`; or by SWITCH, FORK and EXIT records; or by both. The state of a task is unknown
/// before its first event. For the idle tasks (tid 0, one per CPU) only the running state is reported.
#[derive(Debug, Default)]
pub struct TaskStates {
    tasks: FxHashMap<TaskKey, TaskRecord>,
    /// The running task, by CPU.
    current: FxHashMap<u32, TaskKey>,
    /// The number of running tasks, without idle ones.
    running: u32,
    /// The number of losses so far: calls of [`TaskStates::lost`], not lost records.
    losses: u64,
    /// Whether a `sched_switch` event was handled.
    has_switch_events: bool,
    counts: StateCounts,
}

/// A thread; for idle tasks, which all have tid 0, with the CPU.
type TaskKey = (u32, Option<u32>);

/// The known state of a task.
#[derive(Debug, Clone, Copy)]
struct TaskRecord {
    state: RunState,
    since: u64,
    cpu: Option<u32>,
    migrations: u32,
    /// The number of losses before the state began.
    losses: u64,
}

/// A completed state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateInterval {
    /// The thread; 0 for the idle task of `cpu`.
    pub tid: u32,
    /// The state.
    pub state: RunState,
    /// The start time in nanoseconds.
    pub from: u64,
    /// The end time.
    pub to: u64,
    /// The CPU; `None` if unknown. Of a running task the CPU that it ran on, of a runnable one the CPU that it waited for, of a
    /// sleeping one the CPU that it ran on before. After a migration during the state, the new CPU.
    pub cpu: Option<u32>,
    /// The number of migrations to another CPU during the state.
    pub migrations: u32,
    /// Whether records were lost during the state: other states may be missing.
    pub is_doubtful: bool,
}

/// Counts of switches and inconsistencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateCounts {
    /// Number of context switches.
    pub switches: u64,
    /// Switches that contradict earlier ones: another task was on that CPU, the previous task was not running, or the next task
    /// was already running. Without losses this means that not all switches were recorded. The affected states are not reported.
    pub mismatched_switches: u64,
    /// Number of times that a sleeping task ran again without a wakeup.
    pub missing_wakeups: u64,
    /// Number of wakeups of running tasks. They end no state.
    pub wakeups_of_running: u64,
}

/// A switch on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSwitch {
    /// The CPU, if known.
    pub cpu: Option<u32>,
    /// The thread switched out.
    pub prev: u32,
    /// The state of `prev` from now on.
    pub prev_state: SwitchedOut,
    /// The thread switched in.
    pub next: u32,
}

impl StateInterval {
    /// Returns the nanoseconds from start to end; 0 if the clock went backwards.
    #[must_use]
    pub fn duration(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

impl TaskStates {
    /// Creates a state machine without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles a tracepoint event, and calls `ended` with each state that it ends. Events of tracepoints that do not matter are
    /// ignored.
    pub fn event(
        &mut self,
        at: &EventContext,
        event: &TypedEvent<'_>,
        mut ended: impl FnMut(StateInterval),
    ) {
        let time = at.time();
        match event {
            TypedEvent::SchedSwitch(event) => {
                let switch = CpuSwitch {
                    cpu: at.cpu,
                    prev: event.prev_pid().cast_unsigned(),
                    prev_state: event.prev_state().into(),
                    next: event.next_pid().cast_unsigned(),
                };
                self.cpu_switch(time, switch, ended);
            }
            // `sched_waking` and `sched_wakeup_new`, too.
            TypedEvent::SchedWakeup(event) => {
                let cpu = event.target_cpu().map(i32::cast_unsigned);
                let tid = event.pid().cast_unsigned();
                // Only old kernels record `success`; without it, the wakeup succeeded.
                if event.success() != Some(false) {
                    self.wake(time, tid, cpu.or(at.cpu), ended);
                }
            }
            TypedEvent::SchedMigrateTask(event) => {
                let cpu = event.dest_cpu().cast_unsigned();
                self.migrate(event.pid().cast_unsigned(), cpu);
            }
            TypedEvent::SchedProcessFork(event) => {
                self.fork(time, event.child_pid().cast_unsigned(), &mut ended);
            }
            _ => {}
        }
    }

    /// Handles a FORK or EXIT record; others are ignored. EXIT ends a task only without `sched_switch`, otherwise the last switch
    /// does.
    pub fn task(
        &mut self,
        at: &EventContext,
        change: &TaskChange<'_>,
        mut ended: impl FnMut(StateInterval),
    ) {
        match change {
            TaskChange::Fork { child, .. } => self.fork(at.time(), child.tid, &mut ended),
            TaskChange::Exit(task) if !self.has_switch_events => {
                let key = key(task.tid, at.cpu);
                let no_state = None;
                self.change(at.time(), key, no_state, &mut ended);
            }
            _ => {}
        }
    }

    /// Handles a SWITCH record.
    pub fn switch(
        &mut self,
        at: &EventContext,
        switch: ContextSwitch,
        mut ended: impl FnMut(StateInterval),
    ) {
        let (time, cpu) = (at.time(), at.cpu);
        let key = key(at.task.tid, cpu);
        let before = self.state_of(key);
        let out = match switch {
            // Usually a preceding `sched_switch` has already set this state and counted the switch.
            ContextSwitch::In if before == Some(RunState::Running) => return,
            ContextSwitch::In => {
                self.counts.switches += 1;
                return self.switch_in(time, key, cpu, &mut ended);
            }
            ContextSwitch::Out => SwitchedOut::Sleeping(Sleep::Other),
            ContextSwitch::Preempted => SwitchedOut::Runnable(WaitReason::Preempted),
        };
        // If the task is not running, a preceding `sched_switch` has already set its state.
        if before.is_none_or(|state| state == RunState::Running) {
            self.switch_out(time, key, out, cpu, &mut ended);
        }
    }

    /// Notes that records were lost: the current states become doubtful.
    pub fn lost(&mut self) {
        self.losses += 1;
    }

    /// Handles a switch from one task to another.
    pub fn cpu_switch(
        &mut self,
        time: u64,
        switch: CpuSwitch,
        mut ended: impl FnMut(StateInterval),
    ) {
        let CpuSwitch {
            cpu, prev, next, ..
        } = switch;
        self.has_switch_events = true;
        self.counts.switches += 1;
        let (prev, next) = (key(prev, cpu), key(next, cpu));
        let current = cpu.and_then(|cpu| self.current.get(&cpu).copied());
        // The tasks with a switch that was not seen.
        let unseen = [
            current.filter(|current| *current != prev),
            Some(prev).filter(|prev| {
                self.state_of(*prev)
                    .is_some_and(|state| !state.is_running())
            }),
            Some(next).filter(|next| self.state_of(*next).is_some_and(RunState::is_running)),
        ];
        if unseen.iter().any(Option::is_some) {
            self.counts.mismatched_switches += 1;
            for task in unseen.into_iter().flatten() {
                self.forget(task);
            }
        }
        self.switch_out(time, prev, switch.prev_state, cpu, &mut ended);
        self.switch_in(time, next, cpu, &mut ended);
    }

    /// Handles a wakeup of a task, to run on `cpu`.
    pub fn wake(
        &mut self,
        time: u64,
        tid: u32,
        cpu: Option<u32>,
        mut ended: impl FnMut(StateInterval),
    ) {
        let key = key(tid, cpu);
        match self.state_of(key) {
            // `sched_wakeup` after `sched_waking` of the same wakeup, which already ended the sleep.
            Some(RunState::Runnable(_)) => {}
            Some(RunState::Running) => self.counts.wakeups_of_running += 1,
            Some(RunState::New | RunState::Sleeping(_)) | None => {
                let state = Some((RunState::Runnable(WaitReason::Woken), cpu));
                self.change(time, key, state, &mut ended);
            }
        }
    }

    /// Handles a migration to another CPU. The state continues.
    pub fn migrate(&mut self, tid: u32, cpu: u32) {
        if let Some(known) = self.tasks.get_mut(&key(tid, Some(cpu))) {
            known.cpu = Some(cpu);
            known.migrations += 1;
        }
    }

    /// Returns the state of a task and its start time. For a CPU's idle task use [`TaskStates::current`].
    #[must_use]
    pub fn state(&self, tid: u32) -> Option<(RunState, u64)> {
        let known = self.tasks.get(&(tid, None))?;
        Some((known.state, known.since))
    }

    /// Returns the thread running on a CPU: 0 if idle, `None` if unknown.
    #[must_use]
    pub fn current(&self, cpu: u32) -> Option<u32> {
        let (tid, _) = self.current.get(&cpu)?;
        Some(*tid)
    }

    /// Returns the number of running tasks, without idle ones.
    #[must_use]
    pub fn running_count(&self) -> u32 {
        self.running
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn counts(&self) -> StateCounts {
        self.counts
    }

    /// Returns the current states, ended at `time`, sorted by thread and CPU.
    #[must_use]
    pub fn finish(self, time: u64) -> Vec<StateInterval> {
        let losses = self.losses;
        let tasks = self.tasks.into_iter();
        let mut open: Vec<StateInterval> = tasks
            .map(|(key, known)| known.until(time, key, losses))
            .collect();
        open.sort_unstable_by_key(|interval| (interval.tid, interval.cpu));
        open
    }

    fn state_of(&self, key: TaskKey) -> Option<RunState> {
        self.tasks.get(&key).map(|known| known.state)
    }

    /// Removes a task whose state ended at an unknown time, without reporting the state.
    fn forget(&mut self, key: TaskKey) {
        let (unknown_time, no_state) = (0, None);
        self.change(unknown_time, key, no_state, &mut |_not_reported| {});
    }

    /// Handles the creation of a task.
    fn fork(&mut self, time: u64, tid: u32, ended: &mut impl FnMut(StateInterval)) {
        // The tracepoint and the record report the same fork.
        if self.state_of((tid, None)) != Some(RunState::New) {
            // A state of this tid is that of an earlier task, whose end was not seen.
            self.forget((tid, None));
            self.change(time, (tid, None), Some((RunState::New, None)), ended);
        }
    }

    /// Handles the switch-out of a task: `out` determines its next state.
    fn switch_out(
        &mut self,
        time: u64,
        key: TaskKey,
        out: SwitchedOut,
        cpu: Option<u32>,
        ended: &mut impl FnMut(StateInterval),
    ) {
        let state = match out {
            _ if is_idle(key) => None,
            SwitchedOut::Dead => None,
            SwitchedOut::Runnable(waiting) => Some((RunState::Runnable(waiting), cpu)),
            SwitchedOut::Sleeping(sleep) => Some((RunState::Sleeping(sleep), cpu)),
        };
        self.change(time, key, state, ended);
    }

    /// Handles the switch-in of a task.
    fn switch_in(
        &mut self,
        time: u64,
        key: TaskKey,
        cpu: Option<u32>,
        ended: &mut impl FnMut(StateInterval),
    ) {
        let is_asleep = matches!(self.state_of(key), Some(RunState::Sleeping(_)));
        self.counts.missing_wakeups += u64::from(is_asleep);
        self.change(time, key, Some((RunState::Running, cpu)), ended);
        if let Some(cpu) = cpu {
            self.current.insert(cpu, key);
        }
    }

    /// Removes the CPU's entry in `current`, if it is this task; does not change the number `running`.
    fn clear_running(&mut self, cpu: Option<u32>, key: TaskKey) {
        if let Some(cpu) = cpu
            && self.current.get(&cpu) == Some(&key)
        {
            self.current.remove(&cpu);
        }
    }

    /// Ends the state of a task and starts `state` on its CPU, if known; without a `state`, removes the task.
    fn change(
        &mut self,
        time: u64,
        key: TaskKey,
        state: Option<(RunState, Option<u32>)>,
        ended: &mut impl FnMut(StateInterval),
    ) {
        let losses = self.losses;
        let before = match state {
            None => self.tasks.remove(&key),
            Some((state, cpu)) => self.tasks.insert(
                key,
                TaskRecord {
                    state,
                    since: time,
                    cpu,
                    migrations: 0,
                    losses,
                },
            ),
        };
        if !is_idle(key) {
            let count = |state: RunState| u32::from(state.is_running());
            self.running += state.map_or(0, |(state, _)| count(state));
            self.running -= before.map_or(0, |known| count(known.state));
        }
        if let Some(known) = before {
            self.clear_running(known.cpu, key);
            ended(known.until(time, key, losses));
        }
    }
}

impl TaskRecord {
    /// Returns the state, ended at `time`; `losses` is the number of losses so far.
    fn until(self, time: u64, (tid, _): TaskKey, losses: u64) -> StateInterval {
        StateInterval {
            tid,
            state: self.state,
            from: self.since,
            to: time,
            cpu: self.cpu,
            migrations: self.migrations,
            is_doubtful: self.losses != losses,
        }
    }
}

fn key(tid: u32, cpu: Option<u32>) -> TaskKey {
    (tid, cpu.filter(|_| tid == 0))
}

fn is_idle((tid, _): TaskKey) -> bool {
    tid == 0
}
