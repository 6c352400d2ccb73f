//! The tasks that wait for each CPU, and the tasks that run on that CPU during the waits.

use std::ops::AddAssign;

use rustc_hash::FxHashMap;

use super::AntagonistTime;
use crate::sched::TaskIndex;
use crate::sched::tasks::entry;

/// The minimum number of charges of a wait before those to the same task are summed up.
const MIN_SUMMED: usize = 64;

/// The waits that have not ended, by CPU. Each moment of a wait is charged to the task that runs on that CPU, or to an unknown
/// task.
///
/// A task waits for the CPU that it is woken for or preempted on, and after a migration for the new one. Memory is bounded by
/// the number of waiting tasks times the number of tasks that run while they wait.
#[derive(Debug, Default)]
pub(super) struct RunQueues {
    queues: FxHashMap<u32, RunQueue>,
    /// The CPU that each task waits for, by [`TaskIndex`].
    waiting: Vec<Option<u32>>,
    /// The wakeup that was the last event on each CPU, by the CPU that recorded it (not the one that the task waits for). Before
    /// each event, the caller takes that of the event's CPU, so an older wakeup is never found.
    just_woken: FxHashMap<u32, Wakeup>,
}

/// A wakeup; `time` is in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wakeup {
    task: TaskIndex,
    time: u64,
}

/// The running task of a CPU, and the waits for that CPU.
#[derive(Debug, Default)]
struct RunQueue {
    /// The task that has run since `since` (in nanoseconds); `None` if unknown.
    running: Option<TaskIndex>,
    since: u64,
    waits: Vec<OpenWait>,
}

/// The wait of a task.
#[derive(Debug)]
struct OpenWait {
    task: TaskIndex,
    /// When it began, or when the task was moved to its present CPU.
    since: u64,
    /// Includes the charges from CPUs that the task waited for before a migration.
    charges: Charges,
}

/// The part of a wait in which one task ran on the CPU that the wait is for, or the sum of such parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Charge {
    /// The task; `None` if unknown.
    pub(super) by: Option<TaskIndex>,
    pub(super) nanos: u64,
    /// How often the task ran during the wait, or the waits.
    pub(super) runs: u64,
}

impl AddAssign for Charge {
    fn add_assign(&mut self, other: Self) {
        self.nanos = self.nanos.saturating_add(other.nanos);
        self.runs += other.runs;
    }
}

impl Charge {
    /// Returns the time and the number of runs. The caller counts the delayed tasks.
    pub(super) fn time(&self) -> AntagonistTime {
        AntagonistTime {
            nanos: self.nanos,
            runs: self.runs,
            delayed_tasks: 0,
        }
    }
}

/// The charges of a wait. Charges to the same task are summed up when the list has grown long.
#[derive(Debug, Default)]
struct Charges {
    list: Vec<Charge>,
    /// The length of `list` after it was last summed up.
    distinct: usize,
}

impl RunQueues {
    /// Removes and returns the wakeup that was the last event on a CPU.
    pub(super) fn take_just_woken(&mut self, cpu: Option<u32>) -> Option<Wakeup> {
        self.just_woken.remove(&cpu?)
    }

    /// Begins the wait of a task for `cpu`. The wakeup was recorded on `waker_cpu`.
    pub(super) fn wake(
        &mut self,
        task: TaskIndex,
        cpu: Option<u32>,
        waker_cpu: Option<u32>,
        time: u64,
    ) {
        if let Some(waker_cpu) = waker_cpu {
            self.just_woken.insert(waker_cpu, Wakeup { task, time });
        }
        self.begin(task, cpu, time);
    }

    /// Begins the wait of a task for `cpu`; if the CPU is unknown, no wait begins. An open wait of the task
    /// ends, and its charges are dropped.
    pub(super) fn begin(&mut self, task: TaskIndex, cpu: Option<u32>, time: u64) {
        self.end(task, time);
        self.enqueue(cpu, OpenWait::new(task, time));
    }

    /// Ends the wait of a task, and returns its charges, one per task; none if it was not waiting.
    pub(super) fn end(&mut self, task: TaskIndex, time: u64) -> Vec<Charge> {
        let wait = self.dequeue(task, time);
        wait.map(|wait| wait.charges.into_sums())
            .unwrap_or_default()
    }

    /// Moves a waiting task to another CPU. `just_woken` is the wakeup, if any, that was the event directly before the
    /// migration on the CPU that recorded both. If it began the task's wait, the kernel chose the new CPU before the task was
    /// in a queue: the whole wait is for the new CPU.
    pub(super) fn migrate(
        &mut self,
        task: TaskIndex,
        cpu: u32,
        just_woken: Option<Wakeup>,
        time: u64,
    ) {
        let Some(mut wait) = self.dequeue(task, time) else {
            return;
        };
        // The wakeup that began this wait, if a wakeup did.
        let begin = Wakeup {
            task,
            time: wait.since,
        };
        if just_woken == Some(begin) {
            // The task was never in the queue of its previous CPU.
            wait.charges = Charges::default();
        } else {
            wait.since = time;
        }
        self.enqueue(Some(cpu), wait);
    }

    /// Handles a switch: charges the waits for `cpu` to `prev`, or to an unknown task if switches are missing.
    pub(super) fn switch(&mut self, cpu: u32, prev: TaskIndex, next: TaskIndex, time: u64) {
        let queue = self.queues.entry(cpu).or_default();
        // If another task was switched in last, switches are missing.
        let is_missing = queue.running.is_some_and(|running| running != prev);
        // Before the first switch of the CPU, `prev` counts as running since time 0.
        queue.running = (!is_missing).then_some(prev);
        let RunQueue {
            running,
            since,
            waits,
        } = queue;
        for wait in waits {
            wait.charge(*running, *since, time);
        }
        queue.running = Some(next);
        queue.since = time;
    }

    fn enqueue(&mut self, cpu: Option<u32>, wait: OpenWait) {
        let Some(cpu) = cpu else {
            return;
        };
        *entry(&mut self.waiting, wait.task) = Some(cpu);
        self.queues.entry(cpu).or_default().waits.push(wait);
    }

    /// Removes and returns the wait of a task, with charges up to `time`; `None` if it does not wait.
    fn dequeue(&mut self, task: TaskIndex, time: u64) -> Option<OpenWait> {
        let cpu = self.waiting.get_mut(task.get())?.take()?;
        let queue = self.queues.get_mut(&cpu)?;
        let index = queue.waits.iter().position(|wait| wait.task == task)?;
        let mut wait = queue.waits.swap_remove(index);
        wait.charge(queue.running, queue.since, time);
        Some(wait)
    }
}

impl OpenWait {
    fn new(task: TaskIndex, since: u64) -> Self {
        Self {
            task,
            since,
            charges: Charges::default(),
        }
    }

    /// Charges the part of the wait between `since` and `until` to the task `by` that ran in that time. `since` may be before
    /// `self.since`, the start of the wait.
    fn charge(&mut self, by: Option<TaskIndex>, since: u64, until: u64) {
        let nanos = until.saturating_sub(self.since.max(since));
        if nanos > 0 {
            self.charges.push(Charge { by, nanos, runs: 1 });
        }
    }
}

impl Charges {
    fn push(&mut self, charge: Charge) {
        if self.list.len() >= MIN_SUMMED.max(2 * self.distinct) {
            self.sum_up();
        }
        self.list.push(charge);
    }

    fn sum_up(&mut self) {
        self.list.sort_unstable_by_key(|charge| charge.by);
        self.list.dedup_by(|charge, sum| {
            let is_same = charge.by == sum.by;
            if is_same {
                *sum += *charge;
            }
            is_same
        });
        self.distinct = self.list.len();
    }

    fn into_sums(mut self) -> Vec<Charge> {
        self.sum_up();
        self.list
    }
}
