//! The scheduler. Source: the kernel's `include/trace/events/sched.h`.

use super::event::typed_event;
use super::{TaskStateField, TextField};

typed_event! {
    /// A context switch on one CPU.
    SchedSwitch(SchedSwitchLayout) = "sched:sched_switch" {
        /// Name of the task that is switched out.
        prev_comm: TextField,
        /// Its thread id; 0 for the idle task.
        prev_pid: i32,
        /// Its priority: 0 to 99 for real-time tasks, 120 for nice 0.
        prev_prio: i32,
        /// The state in which it is switched out.
        prev_state: TaskStateField,
        /// Name of the task that is switched in.
        next_comm: TextField,
        /// Its thread id; 0 for the idle task.
        next_pid: i32,
        /// Its priority.
        next_prio: i32,
    }
}

typed_event! {
    /// A task is woken: `sched_waking` in the context of the waker (since Linux 4.3), `sched_wakeup` when the task is
    /// runnable, `sched_wakeup_new` for a new task.
    SchedWakeup(SchedWakeupLayout) =
        "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new"
    {
        /// Name of the task.
        comm: TextField,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// Whether the task was not runnable before. Current kernels trace only such wakeups and lack
        /// the field.
        success: Option<bool>,
        /// The target CPU.
        target_cpu: Option<i32> as "target_cpu" | "cpu",
        /// Flags of the waker's context, among them [`SchedWakeup::INTERRUPT`].
        common_flags: Option<u32>,
    }
}

impl SchedWakeup<'_> {
    /// Bits of `common_flags` in the handler of an interrupt or of a softirq: the running task is not the waker
    /// (`TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_SOFTIRQ` of `include/linux/trace_events.h`).
    pub const INTERRUPT: u32 = 0x18;

    /// Whether the handler of an interrupt or softirq, not the running task, wakes the task.
    #[must_use]
    pub fn is_by_interrupt(&self) -> bool {
        self.common_flags()
            .is_some_and(|flags| flags & Self::INTERRUPT != 0)
    }
}

typed_event! {
    /// A task is moved to another CPU.
    SchedMigrateTask(SchedMigrateTaskLayout) = "sched:sched_migrate_task" {
        /// Name of the task.
        comm: TextField,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// The CPU it leaves.
        orig_cpu: i32,
        /// The CPU it moves to.
        dest_cpu: i32,
    }
}

typed_event! {
    /// A task is created.
    SchedProcessFork(SchedProcessForkLayout) = "sched:sched_process_fork" {
        /// Name of the parent.
        parent_comm: TextField,
        /// Thread id of the parent.
        parent_pid: i32,
        /// Name of the new task.
        child_comm: TextField,
        /// Thread id of the new task.
        child_pid: i32,
    }
}

typed_event! {
    /// A task exits.
    SchedProcessExit(SchedProcessExitLayout) = "sched:sched_process_exit" {
        /// Its name.
        comm: TextField,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// Whether it is the last thread of its process. New kernels only.
        group_dead: Option<bool>,
    }
}

typed_event! {
    /// A process executes another program.
    SchedProcessExec(SchedProcessExecLayout) = "sched:sched_process_exec" {
        /// Path of the program.
        filename: TextField,
        /// Thread id of the task after the call, which is the process id.
        pid: i32,
        /// Thread id of the thread that made the call.
        old_pid: i32,
    }
}

typed_event! {
    /// CPU time of a task is accounted, such as at a tick or a context switch.
    SchedStatRuntime(SchedStatRuntimeLayout) = "sched:sched_stat_runtime" {
        /// Name of the task.
        comm: TextField,
        /// Its thread id.
        pid: i32,
        /// CPU time in nanoseconds since the last such event of the task.
        runtime: u64,
        /// Its virtual run time in nanoseconds. Not in new kernels.
        vruntime: Option<u64>,
    }
}
