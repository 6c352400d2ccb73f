//! Waits for locks of user programs: calls of futex(2) that wait, and those that wake. With `lock record --user`, BPF also writes
//! a capture record for each wait, with the memory of the futex, from which its holder is read (`NewWait`).

use rustc_hash::FxHashMap;

use super::owners::NewWait;
use super::rows::LockRow;
use crate::EventContext;

/// The tracepoints of futex(2), `system:name`.
pub const FUTEX_EVENTS: [&str; 2] = ["syscalls:sys_enter_futex", "syscalls:sys_exit_futex"];

/// The flag of waits for a futex, above the kernel's `LCB_F_*`.
pub const FUTEX: u64 = 1 << 32;
/// The flag of waits for a futex with priority inheritance.
pub const FUTEX_PI: u64 = 1 << 33;

/// `-EAGAIN`, the return value of a call that did not wait: the futex no longer had the expected value.
pub(super) const AGAIN: i64 = -11;

/// The bits of an operation of futex(2) without its flags.
pub(super) const COMMAND: u32 = 0x7f;

/// What a call of futex(2) does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FutexAction {
    /// Waits. The value is the flag of the wait: [`FUTEX`] or [`FUTEX_PI`].
    Wait(u64),
    /// Wakes threads.
    Wake,
    /// Anything else.
    Other,
}

impl FutexAction {
    /// Returns the meaning of an operation (`FUTEX_*` of linux/futex.h); flags are ignored.
    pub(super) fn of(operation: u32) -> Self {
        match operation & COMMAND {
            // WAIT, WAIT_BITSET.
            0 | 9 => Self::Wait(FUTEX),
            // LOCK_PI, WAIT_REQUEUE_PI, LOCK_PI2.
            6 | 11 | 13 => Self::Wait(FUTEX_PI),
            // WAKE, REQUEUE, CMP_REQUEUE, WAKE_OP, UNLOCK_PI, WAKE_BITSET, CMP_REQUEUE_PI.
            1 | 3 | 4 | 5 | 7 | 10 | 12 => Self::Wake,
            _ => Self::Other,
        }
    }
}

/// Whether the futex is private to one process (`FUTEX_PRIVATE_FLAG`).
pub(super) fn is_private(operation: u32) -> bool {
    operation & 0x80 != 0
}

/// A lock of a user program, by its address in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct UserLock {
    pub(super) pid: u32,
    pub(super) address: u64,
}

/// A wait that has not ended.
#[derive(Debug, Clone, Copy)]
struct UserWait {
    row: usize,
    lock: UserLock,
    /// When it began, in ns.
    begin: u64,
    holder: Option<u32>,
    /// Whether the capture record of the wait has been observed, be it before or after the start of the call.
    is_captured: bool,
    /// How long the thread had waited for CPUs when the wait began, in ns.
    queued: u64,
}

/// A wait that begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct BegunWait {
    pub(super) address: u64,
    /// The index of the row that counts the wait.
    pub(super) row: usize,
    /// The thread that holds the futex, if known.
    pub(super) holder: Option<u32>,
    /// Whether the capture record of the wait, from which `holder` is read, preceded the call.
    pub(super) is_captured: bool,
    /// How long the thread has waited for CPUs so far, in ns.
    pub(super) queued: u64,
}

/// A call of futex(2) that returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedCall {
    /// Its return value.
    pub(super) result: i64,
    /// How long the thread has waited for CPUs so far, in ns.
    pub(super) queued: u64,
}

/// The latest call that wakes waiters of a lock.
#[derive(Debug, Clone, Copy)]
struct Wake {
    tid: u32,
    time: u64,
}

/// Open waits by thread, and the latest wake by lock.
#[derive(Debug, Default)]
pub(super) struct UserWaits {
    open: FxHashMap<u32, UserWait>,
    wakes: FxHashMap<UserLock, Wake>,
}

impl UserWaits {
    /// Begins a wait. It replaces an open wait of the thread, whose end was lost.
    pub(super) fn begin(&mut self, at: &EventContext, wait: BegunWait, rows: &mut [LockRow]) {
        let BegunWait {
            address,
            row,
            holder,
            is_captured,
            queued,
        } = wait;
        if let Some(lock_row) = rows.get_mut(row) {
            lock_row.contended += 1;
        }
        let lock = UserLock {
            pid: at.task.pid,
            address,
        };
        let begin = at.time();
        let wait = UserWait {
            row,
            lock,
            begin,
            holder,
            is_captured,
            queued,
        };
        self.open.insert(at.task.tid, wait);
    }

    /// Returns the row of the open wait that the capture record `captured` belongs to; `None` if the thread does not wait for
    /// that address, or if its wait already has a capture record.
    pub(super) fn uncaptured_row(&self, captured: &NewWait) -> Option<usize> {
        let open = self.open.get(&captured.tid)?;
        let is_uncaptured = !open.is_captured && open.lock.address == captured.address;
        is_uncaptured.then_some(open.row)
    }

    /// Sets the row of an open wait, and its holder from its capture record. If the row changes, the caller has moved the wait
    /// from the old row's `contended` to that of the new one.
    pub(super) fn set_captured(&mut self, captured: &NewWait, row: usize) {
        if let Some(open) = self.open.get_mut(&captured.tid) {
            open.is_captured = true;
            open.holder = captured.holder.map(|holder| holder.tid);
            open.row = row;
        }
    }

    /// Records that the current thread wakes threads that wait for the lock at `address`.
    pub(super) fn wake(&mut self, at: &EventContext, address: u64) {
        let lock = UserLock {
            pid: at.task.pid,
            address,
        };
        let (tid, time) = (at.task.tid, at.time());
        self.wakes.insert(lock, Wake { tid, time });
    }

    /// Ends the wait of the current thread, if it has one, with the result of its call.
    pub(super) fn end(&mut self, at: &EventContext, call: EndedCall, rows: &mut [LockRow]) {
        let EndedCall { result, queued } = call;
        let Some(wait) = self.open.remove(&at.task.tid) else {
            return;
        };
        let Some(row) = rows.get_mut(wait.row) else {
            return;
        };
        if result == AGAIN {
            row.contended -= 1;
            return;
        }
        row.acquired += 1;
        let waited = at.time().saturating_sub(wait.begin);
        row.add_wait(waited, queued.saturating_sub(wait.queued));
        if let Some(holder) = wait.holder {
            *row.owners.entry(holder).or_default() += 1;
        }
        // Wakes by another process that shares the memory are not found: the lock may have another address in that process.
        let wake = self.wakes.get(&wait.lock);
        // Calls that time out or are interrupted return an error.
        let wake = wake.filter(|wake| result == 0 && wake.time >= wait.begin);
        if let Some(wake) = wake {
            *row.wakers.entry(wake.tid).or_default() += 1;
        }
    }
}
