//! Lock contention, and the events of lockdep. Source: the kernel's `include/trace/events/lock.h`.

use super::event::typed_event;
use super::{NamedNumber, TextField};

typed_event! {
    /// A wait for a lock begins (since Linux 5.19).
    ContentionBegin(ContentionBeginLayout) = "lock:contention_begin" {
        /// Address of the lock.
        lock_addr: u64,
        /// Bits for the kind of lock and of access, named `SPIN`, `READ`, `MUTEX`, ….
        flags: NamedNumber,
    }
}

typed_event! {
    /// The wait for a lock ends (since Linux 5.19).
    ContentionEnd(ContentionEndLayout) = "lock:contention_end" {
        /// Address of the lock.
        lock_addr: u64,
        /// 0, or a negated errno if the lock was not taken.
        ret: i32,
    }
}

typed_event! {
    /// A task is about to take a lock. Only kernels with CONFIG_LOCKDEP have this event.
    LockAcquire(LockAcquireLayout) = "lock:lock_acquire" {
        /// Bit 0: a trylock, which does not wait; bit 1: for reading.
        flags: u32,
        /// Name of the lock's class.
        name: TextField,
        /// Address of the lock's `struct lockdep_map`.
        lockdep_addr: u64,
    }
}

typed_event! {
    /// A task has taken a lock. Only kernels with CONFIG_LOCK_STAT have this event.
    LockAcquired(LockAcquiredLayout) = "lock:lock_acquired" {
        /// Name of the lock's class.
        name: TextField,
        /// Address of the lock's `struct lockdep_map`.
        lockdep_addr: u64,
    }
}

typed_event! {
    /// A task has to wait for a lock. Only kernels with CONFIG_LOCK_STAT have this event.
    LockContended(LockContendedLayout) = "lock:lock_contended" {
        /// Name of the lock's class.
        name: TextField,
        /// Address of the lock's `struct lockdep_map`.
        lockdep_addr: u64,
    }
}

typed_event! {
    /// A task releases a lock. Only kernels with CONFIG_LOCKDEP have this event.
    LockRelease(LockReleaseLayout) = "lock:lock_release" {
        /// Name of the lock's class.
        name: TextField,
        /// Address of the lock's `struct lockdep_map`.
        lockdep_addr: u64,
    }
}
