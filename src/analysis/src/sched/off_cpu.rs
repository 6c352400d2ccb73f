//! The time that tasks do not run, by state, by the stack with which they leave the CPU, and by the tasks that wake them.
//!
//! ```text
//! switch out (S, D, ...) --sleeping--> wakeup --run queue--> switch in
//! switch out (R) ---------------run queue--------------> switch in
//! ```

mod named;
mod stacks;
mod wakers;

use std::cmp::Reverse;

use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};
use rustc_hash::FxHashMap;

pub use self::named::{FrameCode, NamedFrame, NamedSwitchStacks};
pub use self::stacks::{StackFrame, StackPrepare, SwitchStack};
use self::stacks::{StackNumber, StackTable};
use self::wakers::{ChainNumber, WakerChains, WakerKey};
use super::tasks::SchedTasks;
use super::{LostStretches, NameNumber, NameTable, UNKNOWN_PID};
use crate::{
    EventContext, Loss, Observer, RunState, Sleep, StateInterval, SwitchedOut, TaskChange,
    TaskStates, WaitReason,
};

/// The tasks that are counted, and the number of wakers.
#[derive(Debug, Clone, Default)]
pub struct OffCpuOptions {
    /// Only tasks of these processes; `None` for all.
    pub pids: Option<Vec<i32>>,
    /// Only these threads; `None` for all.
    pub tids: Option<Vec<i32>>,
    /// The maximum number of wakers of a row: 0 for none, 1 for the waker, 2 for the waker and the waker's waker.
    pub max_wakers: usize,
}

/// Why a task does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OffCpuState {
    /// The task sleeps, from the switch to the wakeup.
    Sleeping(Sleep),
    /// The task waits for a CPU after a wakeup.
    Woken,
    /// The task waits for a CPU because another task runs instead. Tasks that call sched_yield(2) are included: the kernel
    /// reports them in the same way as tasks that are preempted at the return to user space.
    Preempted,
}

/// The sum of some intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuTime {
    /// The number of intervals.
    pub count: u64,
    /// Their total length in nanoseconds.
    pub nanos: u64,
    /// The length of the longest one in nanoseconds.
    pub max: u64,
}

/// The intervals in which tasks of one name did not run, with one state, one stack and one chain of wakers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffCpuRow {
    /// The name; not necessarily UTF-8.
    pub comm: Vec<u8>,
    /// Why the tasks did not run.
    pub state: OffCpuState,
    /// The stack with which they left the CPU, as an index of [`OffCpuTable::stacks`].
    pub stack: usize,
    /// The waker of the tasks, then the waker of that waker, and so on. Empty for time in a run queue, and if wakers are unknown
    /// or not requested.
    pub wakers: Vec<OffCpuWaker>,
    /// The sum of the intervals.
    pub time: OffCpuTime,
}

/// A wakeup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffCpuWaker {
    /// The name of the waking task; `None` for an interrupt or an idle task.
    pub comm: Option<Vec<u8>>,
    /// The stack at the wakeup, as an index of [`OffCpuTable::stacks`].
    pub stack: usize,
}

/// The result of [`OffCpu`].
#[derive(Debug)]
pub struct OffCpuTable {
    /// The rows, the one with the most time first.
    pub rows: Vec<OffCpuRow>,
    /// The stacks that rows and wakers refer to, innermost frame first.
    pub stacks: Vec<Box<[StackFrame]>>,
    /// The stretches of time in which records were lost.
    pub losses: LostStretches,
}

/// Sums up the time that tasks do not run. Intervals that do not end in the recording, or that begin before the task is first
/// switched out, are not counted.
#[derive(Debug)]
pub struct OffCpu {
    options: OffCpuOptions,
    states: TaskStates,
    tasks: SchedTasks,
    names: NameTable,
    stacks: StackTable,
    chains: WakerChains,
    /// Tasks that have left their CPU at least once, by thread id. Those that run again are kept: the wakers of a running task
    /// are needed when it wakes another task.
    away: FxHashMap<u32, AwayTask>,
    sums: FxHashMap<RowKey, OffCpuTime>,
    losses: LostStretches,
}

/// The stack of a task's last switch away from its CPU, and the wakers of its last sleep.
#[derive(Debug, Clone, Copy, Default)]
struct AwayTask {
    /// The stack with which it left.
    stack: StackNumber,
    /// The waker that ended its last sleep, and the wakers of that waker.
    wakers: ChainNumber,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowKey {
    name: NameNumber,
    state: OffCpuState,
    stack: StackNumber,
    wakers: ChainNumber,
}

impl OffCpuTime {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }
}

impl OffCpu {
    /// Creates an analysis that has no events yet.
    #[must_use]
    pub fn new(options: OffCpuOptions) -> Self {
        Self {
            options,
            states: TaskStates::new(),
            tasks: SchedTasks::new(),
            names: NameTable::default(),
            stacks: StackTable::default(),
            chains: WakerChains::default(),
            away: FxHashMap::default(),
            sums: FxHashMap::default(),
            losses: LostStretches::default(),
        }
    }

    /// Returns the rows of all sums, and their stacks.
    #[must_use]
    pub fn finish(self) -> OffCpuTable {
        let Self {
            names,
            chains,
            sums,
            stacks,
            losses,
            ..
        } = self;
        let waker = |key: &WakerKey| OffCpuWaker {
            comm: key.name.map(|name| names.get(name).to_vec()),
            stack: key.stack.get(),
        };
        let rows = sums.into_iter().map(|(key, time)| OffCpuRow {
            comm: names.get(key.name).to_vec(),
            state: key.state,
            stack: key.stack.get(),
            wakers: chains.wakers(key.wakers).map(waker).collect(),
            time,
        });
        let mut rows: Vec<OffCpuRow> = rows.collect();
        // Stacks are numbered in order of their first event, so the order of rows does not depend on the hash table.
        rows.sort_by_cached_key(|row| {
            let wakers = row.wakers.iter();
            let wakers: Vec<_> = wakers
                .map(|waker| (waker.stack, waker.comm.clone()))
                .collect();
            (
                Reverse(row.time.nanos),
                row.stack,
                row.state,
                row.comm.clone(),
                wakers,
            )
        });
        OffCpuTable {
            rows,
            stacks: stacks.into_stacks(),
            losses,
        }
    }

    /// Notes the waker of a task that sleeps.
    fn wake(&mut self, at: &EventContext, event: &SchedWakeup<'_>, stack: SwitchStack) {
        let woken = event.pid().cast_unsigned();
        let state = self.states.state(woken);
        let is_asleep = state.is_some_and(|(state, _)| matches!(state, RunState::Sleeping(_)));
        if self.options.max_wakers == 0 || !is_asleep {
            return;
        }
        let is_interrupt = stack.is_interrupt || at.task.tid == 0;
        let name = (!is_interrupt).then(|| self.name(at.task.tid));
        let key = WakerKey {
            name,
            stack: self.stacks.add(stack.frames),
        };
        let earlier_wakers = match is_interrupt {
            // The interrupted task is not the waker, so its own wakers do not matter.
            true => ChainNumber::default(),
            false => {
                self.away
                    .get(&at.task.tid)
                    .copied()
                    .unwrap_or_default()
                    .wakers
            }
        };
        let chain = self
            .chains
            .prepend(key, earlier_wakers, self.options.max_wakers);
        self.away.entry(woken).or_default().wakers = chain;
    }

    /// Notes the stack with which a task leaves its CPU. A sleep has no waker yet.
    fn leave(&mut self, event: &SchedSwitch<'_>, stack: SwitchStack) {
        let stack = self.stacks.add(stack.frames);
        let away = self.away.entry(event.prev_pid().cast_unsigned());
        let away = away.or_default();
        away.stack = stack;
        if let SwitchedOut::Sleeping(_) = event.prev_state().into() {
            away.wakers = ChainNumber::default();
        }
    }

    fn name(&mut self, tid: u32) -> NameNumber {
        let task = self.tasks.find_or_add(UNKNOWN_PID, tid.cast_signed());
        self.names.add(&self.tasks.get(task).comm)
    }

    /// Adds an interval to the sum of its row. Ignores intervals in which the task runs, those before its first switch, and those
    /// of tasks that are not selected.
    fn add(&mut self, interval: StateInterval) {
        let state = match interval.state {
            RunState::Sleeping(sleep) => OffCpuState::Sleeping(sleep),
            RunState::Runnable(WaitReason::Woken) => OffCpuState::Woken,
            RunState::Runnable(WaitReason::Preempted | WaitReason::Yielded) => {
                OffCpuState::Preempted
            }
            RunState::New | RunState::Running => return,
        };
        // The stack of a task before its first switch is unknown.
        let Some(away) = self.away.get(&interval.tid).copied() else {
            return;
        };
        let index = self
            .tasks
            .find_or_add(UNKNOWN_PID, interval.tid.cast_signed());
        let task = self.tasks.get(index);
        let excludes =
            |list: &Option<Vec<i32>>, id| list.as_ref().is_some_and(|list| !list.contains(&id));
        if excludes(&self.options.pids, task.pid) || excludes(&self.options.tids, task.tid) {
            return;
        }
        let key = RowKey {
            name: self.names.add(&task.comm),
            state,
            stack: away.stack,
            wakers: match state {
                OffCpuState::Sleeping(_) => away.wakers,
                OffCpuState::Woken | OffCpuState::Preempted => ChainNumber::default(),
            },
        };
        self.sums.entry(key).or_default().add(interval.duration());
    }
}

impl Observer<SwitchStack> for OffCpu {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, stack: SwitchStack) {
        self.losses.event(at);
        let mut switched_out = None;
        match &event {
            // Before the states change: the sleep that the event ends gets this waker.
            TypedEvent::SchedWakeup(event) => self.wake(at, event, stack),
            // A switch away from an idle task begins no interval.
            TypedEvent::SchedSwitch(event) if event.prev_pid() != 0 => {
                switched_out = Some((event, stack))
            }
            _ => {}
        }
        // A switch ends at most two states.
        let mut ended = Vec::new();
        self.states
            .event(at, &event, |interval| ended.push(interval));
        ended.into_iter().for_each(|interval| self.add(interval));
        // After the intervals are added: the stack of this switch is only for the intervals that begin now.
        if let Some((event, stack)) = switched_out {
            self.leave(event, stack);
        }
    }

    fn task(&mut self, at: &EventContext, change: TaskChange<'_>) {
        self.tasks.change(&change);
        // These records end no state that is counted.
        self.states.task(at, &change, |_| {});
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        self.states.lost();
    }
}
