//! The result of a [`TimeHistory`](super::TimeHistory).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::times::{TaskTimes, TimedTask};

/// The sums of the tasks that ran and are not excluded, and the idle times of CPUs.
#[derive(Debug)]
pub struct TimeSummary {
    /// Tasks that had not exited at the end.
    pub running: Vec<TimedTask>,
    /// Tasks that exited.
    pub terminated: Vec<TimedTask>,
    /// The idle times by CPU number: of the CPUs of the machine and others with switches; if CPUs are selected, only of those.
    pub idle: BTreeMap<u32, CpuIdle>,
    /// The time from the first to the last context switch in the time range, in nanoseconds. If a counted stretch (the time of a
    /// task on a CPU between two switches) begins before the end of the range and ends after it, the switch that ends the stretch
    /// counts as one at the end of the range.
    pub duration: u64,
    /// The number of CPUs that perf prints: those of the machine, or the highest number of a CPU with samples (perf does not
    /// add 1) if that is higher.
    pub cpu_count: u32,
    /// How often the options excluded a task of an event; an event of two tasks may count twice.
    pub skipped: u64,
}

/// The idle time of a CPU, as far as it is known.
#[derive(Debug, Default)]
pub struct CpuIdle {
    /// The idle task's times.
    pub times: TaskTimes,
    /// The idle time by the stack of the task that ran before (if it has none, of an earlier task), longest first; empty unless
    /// only idle times are counted (`--idle-hist`).
    pub stacks: Vec<IdleStack>,
    /// Whether a task other than the idle task was switched out on the CPU.
    pub has_run_tasks: bool,
}

/// The idle time after tasks were switched out with one stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleStack {
    /// The stack as text.
    pub stack: String,
    /// The idle time in nanoseconds.
    pub nanos: u64,
    /// The number of idle periods.
    pub count: u64,
}

/// Returns the stacks, the one with most time first.
pub(super) fn sorted(stacks: FxHashMap<String, (u64, u64)>) -> Vec<IdleStack> {
    let stacks = stacks.into_iter();
    let mut stacks: Vec<IdleStack> = stacks
        .map(|(stack, (nanos, count))| IdleStack {
            stack,
            nanos,
            count,
        })
        .collect();
    stacks.sort_by(|left, right| {
        let by_time = right.nanos.cmp(&left.nanos);
        by_time.then_with(|| left.stack.cmp(&right.stack))
    });
    stacks
}
