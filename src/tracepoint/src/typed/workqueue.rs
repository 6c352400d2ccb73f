//! Work queues. Source: the kernel's `include/trace/events/workqueue.h`.

use super::Text;
use super::event::typed_event;

typed_event! {
    /// Work is put into a queue.
    WorkqueueQueueWork(WorkqueueQueueWorkLayout) = "workqueue:workqueue_queue_work" {
        /// Address of the work, which tells it from other work until it ends.
        work: u64,
        /// Address of the function that does it.
        function: u64,
        /// Name of the queue; old kernels have its address instead.
        workqueue: Option<Text>,
        /// The CPU that was asked for.
        req_cpu: Option<i32>,
        /// The CPU whose queue it is.
        cpu: Option<i32>,
    }
}

typed_event! {
    /// Work may begin as soon as a worker is free.
    WorkqueueActivateWork(WorkqueueActivateWorkLayout) = "workqueue:workqueue_activate_work" {
        /// Address of the work.
        work: u64,
        /// Address of the function that does it; only new kernels say it.
        function: Option<u64>,
    }
}

typed_event! {
    /// Work begins.
    WorkqueueExecuteStart(WorkqueueExecuteStartLayout) = "workqueue:workqueue_execute_start" {
        /// Address of the work.
        work: u64,
        /// Address of the function that does it.
        function: u64,
    }
}

typed_event! {
    /// Work ends.
    WorkqueueExecuteEnd(WorkqueueExecuteEndLayout) = "workqueue:workqueue_execute_end" {
        /// Address of the work, which may be freed by now.
        work: u64,
        /// Address of the function that did it; old kernels don't say it.
        function: Option<u64>,
    }
}
