//! The idle times of CPUs.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::summary::{CpuIdle, sorted};
use super::times::TaskTimes;
use crate::sched::TaskIndex;

/// The idle times by CPU.
#[derive(Debug)]
pub(super) struct IdleCpus {
    cpus: BTreeMap<u32, IdleCpu>,
    /// The number of CPUs of the machine.
    count: u32,
    /// The number of CPUs that perf prints: `count`, or the highest number of a CPU with samples if that is higher (perf does not
    /// add 1).
    printed_count: u32,
}

/// The idle times of a CPU.
#[derive(Debug, Default)]
pub(super) struct IdleCpu {
    pub(super) times: TaskTimes,
    /// The task that was switched out last. If only idle times are shown, the next idle time is added to the times of this task,
    /// and the field becomes `None`.
    pub(super) last_task: Option<TaskIndex>,
    /// The latest known stack of a task after which the CPU became idle. A task without a stack leaves that of an earlier task.
    /// Empty if no stack was known.
    stack: String,
    /// Idle nanoseconds and number of idle times by the stack before them.
    stacks: FxHashMap<String, (u64, u64)>,
    /// Whether a task other than the idle task was switched out.
    has_run_tasks: bool,
}

impl IdleCpu {
    /// Adds idle time to the latest known stack of a task after which the CPU became idle, if there is one.
    pub(super) fn add_to_stack(&mut self, nanos: u64) {
        if self.stack.is_empty() {
            return;
        }
        let (sum, count) = self.stacks.entry(self.stack.clone()).or_default();
        *sum = sum.saturating_add(nanos);
        *count += 1;
    }
}

impl IdleCpus {
    pub(super) fn new(count: u32) -> Self {
        Self {
            cpus: BTreeMap::new(),
            count,
            printed_count: count,
        }
    }

    /// Notes that a CPU has samples.
    pub(super) fn note_cpu(&mut self, cpu: u32) {
        self.printed_count = self.printed_count.max(cpu);
    }

    /// Returns the idle times of a CPU, initially empty.
    pub(super) fn cpu(&mut self, cpu: u32) -> &mut IdleCpu {
        self.cpus.entry(cpu).or_default()
    }

    /// Notes that a task other than the idle task is switched out. `stack` is its stack, empty if
    /// unknown; `None` unless the CPU becomes idle.
    pub(super) fn switch_out(&mut self, cpu: u32, task: TaskIndex, stack: Option<&str>) {
        let idle = self.cpu(cpu);
        idle.has_run_tasks = true;
        idle.last_task = Some(task);
        if let Some(stack) = stack.filter(|stack| !stack.is_empty()) {
            stack.clone_into(&mut idle.stack);
        }
    }

    /// Returns the idle times of all CPUs, or only of those in `filter` if given; and the number of CPUs that perf prints.
    pub(super) fn finish(mut self, filter: Option<&[u32]>) -> (BTreeMap<u32, CpuIdle>, u32) {
        for cpu in 0..self.count {
            self.cpus.entry(cpu).or_default();
        }
        let is_listed = |cpu: &u32| filter.is_none_or(|filter| filter.contains(cpu));
        let cpus = self.cpus.into_iter().filter(|(cpu, _)| is_listed(cpu));
        let listed = cpus.map(|(cpu, idle)| {
            let idle = CpuIdle {
                times: idle.times,
                stacks: sorted(idle.stacks),
                has_run_tasks: idle.has_run_tasks,
            };
            (cpu, idle)
        });
        (listed.collect(), self.printed_count)
    }
}
