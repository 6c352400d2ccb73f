//! The scheduler. Source: the kernel's `include/trace/events/sched.h`.

use super::event::typed_event;
use super::{TaskStateField, TextField};

typed_event! {
    /// A context switch on one CPU.
    SchedSwitch(SchedSwitchLayout) = "sched:sched_switch" {
        /// Name of the task that is switched out.
        prev_comm: TextField,
        /// Thread id of the task that is switched out; 0 for the idle task.
        prev_pid: i32,
        /// Priority of the task that is switched out: -1 for deadline tasks, 0 to 99 for real-time tasks, 120 for nice 0.
        prev_prio: i32,
        /// State of the task that is switched out.
        prev_state: TaskStateField,
        /// Name of the task that is switched in.
        next_comm: TextField,
        /// Thread id of the task that is switched in; 0 for the idle task.
        next_pid: i32,
        /// Priority of the task that is switched in.
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
        /// Whether the task was sleeping; false if it was already runnable. Current kernels trace only wakeups of sleeping
        /// and new tasks, and lack the field.
        success: Option<bool>,
        /// The task's CPU: in `sched_waking` the one on which it ran last, otherwise the one on which it is queued.
        target_cpu: Option<i32> as "target_cpu" | "cpu",
        /// Flags of the context in which the kernel traced the event, among them [`SchedWakeup::INTERRUPT_FLAGS`].
        /// In `sched_waking`, this is the waker's context.
        common_flags: Option<u32>,
    }
}

impl SchedWakeup<'_> {
    /// The bits of `common_flags` that are set in the handler of an interrupt or softirq: `TRACE_FLAG_HARDIRQ` and
    /// `TRACE_FLAG_SOFTIRQ` of `include/linux/trace_events.h`. The running task is not the waker if one of them is set.
    pub const INTERRUPT_FLAGS: u32 = 0x18;

    /// Whether the handler of an interrupt or softirq, not the running task, wakes the task.
    #[must_use]
    pub fn is_by_interrupt(&self) -> bool {
        self.common_flags()
            .is_some_and(|flags| flags & Self::INTERRUPT_FLAGS != 0)
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
        /// Virtual run time of the task in nanoseconds. Not in new kernels.
        vruntime: Option<u64>,
    }
}
