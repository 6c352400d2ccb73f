//! Workqueues. Source: the kernel's `include/trace/events/workqueue.h`.

use super::TextField;
use super::event::typed_event;

typed_event! {
    /// A work item is queued.
    WorkqueueQueueWork(WorkqueueQueueWorkLayout) = "workqueue:workqueue_queue_work" {
        /// Address of the work item, which identifies it until a worker has executed it.
        work: u64,
        /// Address of the work item's function.
        function: u64,
        /// Name of the workqueue; `None` in old kernels, which record its address instead.
        workqueue: Option<TextField>,
        /// The requested CPU; the kernel's `NR_CPUS` if any will do (`WORK_CPU_UNBOUND`).
        req_cpu: Option<i32>,
        /// The CPU of the worker pool, -1 if the pool is not bound to a CPU.
        cpu: Option<i32>,
    }
}

typed_event! {
    /// A work item is activated: a worker may execute it. It was queued before, and may have waited because its workqueue
    /// was at its limit of active items.
    WorkqueueActivateWork(WorkqueueActivateWorkLayout) = "workqueue:workqueue_activate_work" {
        /// Address of the work item.
        work: u64,
        /// Address of its function; `None` in old kernels.
        function: Option<u64>,
    }
}

typed_event! {
    /// A worker begins to execute a work item.
    WorkqueueExecuteStart(WorkqueueExecuteStartLayout) = "workqueue:workqueue_execute_start" {
        /// Address of the work item.
        work: u64,
        /// Address of its function.
        function: u64,
    }
}

typed_event! {
    /// A worker has executed a work item.
    WorkqueueExecuteEnd(WorkqueueExecuteEndLayout) = "workqueue:workqueue_execute_end" {
        /// Address of the work item, which may be freed already.
        work: u64,
        /// Address of its function; `None` in old kernels.
        function: Option<u64>,
    }
}
