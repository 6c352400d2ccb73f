//! Locks that are waited for. Source: the kernel's `include/trace/events/lock.h`.

use super::NamedNumber;
use super::event::typed_event;

typed_event! {
    /// A task begins to wait for a lock; from Linux 5.19 on.
    ContentionBegin(ContentionBeginLayout) = "lock:contention_begin" {
        /// Address of the lock.
        lock_addr: u64,
        /// What kind of lock it is and how it is taken, with names such as `SPIN`, `READ` and `MUTEX`.
        flags: NamedNumber,
    }
}

typed_event! {
    /// It has the lock, or has given up.
    ContentionEnd(ContentionEndLayout) = "lock:contention_end" {
        /// Address of the lock.
        lock_addr: u64,
        /// 0, or a negative error number.
        ret: i32,
    }
}
