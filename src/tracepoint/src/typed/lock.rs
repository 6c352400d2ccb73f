//! Lock contention. Source: the kernel's `include/trace/events/lock.h`.

use super::NamedNumber;
use super::event::typed_event;

typed_event! {
    /// A task begins to wait for a lock. Since Linux 5.19.
    ContentionBegin(ContentionBeginLayout) = "lock:contention_begin" {
        /// Address of the lock.
        lock_addr: u64,
        /// Kind of lock and access, named `SPIN`, `READ`, `MUTEX`, ….
        flags: NamedNumber,
    }
}

typed_event! {
    /// The wait for a lock ends.
    ContentionEnd(ContentionEndLayout) = "lock:contention_end" {
        /// Address of the lock.
        lock_addr: u64,
        /// 0, or a negated errno if the lock was not taken.
        ret: i32,
    }
}
