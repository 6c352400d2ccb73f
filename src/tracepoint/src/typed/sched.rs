//! The scheduler. Source: the kernel's `include/trace/events/sched.h`.

use super::event::typed_event;
use super::{State, Text};

typed_event! {
    /// A CPU goes from one task to another.
    SchedSwitch(SchedSwitchLayout) = "sched:sched_switch" {
        /// Name of the task that leaves.
        prev_comm: Text,
        /// Thread id of the task that leaves; 0 for the idle task.
        prev_pid: i32,
        /// Its priority: 0 to 99 for real-time tasks, 120 for nice 0.
        prev_prio: i32,
        /// The state in which it leaves.
        prev_state: State,
        /// Name of the task that comes.
        next_comm: Text,
        /// Thread id of the task that comes; 0 for the idle task.
        next_pid: i32,
        /// Its priority.
        next_prio: i32,
    }
}

typed_event! {
    /// A task is to run: another one begins to wake it (`sched_waking`, which kernels have from Linux 4.3 on), it has become
    /// runnable (`sched_wakeup`), or it is new (`sched_wakeup_new`).
    SchedWakeup(SchedWakeupLayout) =
        "sched:sched_waking" | "sched:sched_wakeup" | "sched:sched_wakeup_new"
    {
        /// Name of the task.
        comm: Text,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// Whether it was not runnable before; current kernels trace no other case and lack the field.
        success: Option<bool>,
        /// The CPU that it is to run on.
        target_cpu: Option<i32> as "target_cpu" | "cpu",
    }
}

typed_event! {
    /// A task is moved to another CPU.
    SchedMigrateTask(SchedMigrateTaskLayout) = "sched:sched_migrate_task" {
        /// Name of the task.
        comm: Text,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// Where it was.
        orig_cpu: i32,
        /// Where it goes.
        dest_cpu: i32,
    }
}

typed_event! {
    /// A task makes another one.
    SchedProcessFork(SchedProcessForkLayout) = "sched:sched_process_fork" {
        /// Name of the one that was there.
        parent_comm: Text,
        /// Its thread id.
        parent_pid: i32,
        /// Name of the new one.
        child_comm: Text,
        /// Its thread id.
        child_pid: i32,
    }
}

typed_event! {
    /// A task ends.
    SchedProcessExit(SchedProcessExitLayout) = "sched:sched_process_exit" {
        /// Its name.
        comm: Text,
        /// Its thread id.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// Whether its process ends with it; only new kernels say so.
        group_dead: Option<bool>,
    }
}

typed_event! {
    /// A process becomes another program.
    SchedProcessExec(SchedProcessExecLayout) = "sched:sched_process_exec" {
        /// Path of the program.
        filename: Text,
        /// Its thread id.
        pid: i32,
        /// The id of the thread that asked for it.
        old_pid: i32,
    }
}

typed_event! {
    /// A task's time on its CPU, added up now and then.
    SchedStatRuntime(SchedStatRuntimeLayout) = "sched:sched_stat_runtime" {
        /// Name of the task.
        comm: Text,
        /// Its thread id.
        pid: i32,
        /// Nanoseconds since the last such event of the task.
        runtime: u64,
        /// Its virtual time, nanoseconds; new kernels don't say it.
        vruntime: Option<u64>,
    }
}
