//! Waits for locks, for `lock`. A wait for a lock of the kernel lasts from `lock:contention_begin` to
//! `lock:contention_end` of the same thread and lock, or is found in the events of lockdep. A wait of a user program is a
//! call of futex(2).
//!
//! BPF programs capture who holds the lock when a wait begins: `lock record --user` for futexes ([`FUTEX_WAITS`]), and
//! `lock record --owners` for locks of the kernel ([`LOCK_WAITS`]). In this file, a record is a sample of [`LOCK_WAITS`].
//! The holder of a lock is also called its owner, as in perf.

mod captured;
mod captured_locks;
mod deadlocks;
mod futex_holder;
mod holders;
mod known_stacks;
mod owners;
mod rows;
mod run_queue;
mod sequences;
mod user;
mod wait_chains;
mod wait_graph;

use std::ops::Range;
use std::sync::Arc;

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::{FxHashMap, FxHashSet};

pub use self::captured::{CapturedWait, CapturedWaits, FUTEX_WAITS};
use self::captured_locks::{BegunLockWait, LockRecords};
pub use self::captured_locks::{CapturedLock, KNOWN_LOCKS, LOCK_WAITS};
pub use self::deadlocks::{FoundWaits, FutexDeadlocks};
pub use self::futex_holder::{
    BEFORE_FUTEX, FROM_FUTEX, FutexCall, FutexHolder, FutexMemory, FutexObject, MUTEX_MEMORY,
};
pub use self::holders::{FutexHolders, HolderRow, HolderState, HolderTable};
pub use self::known_stacks::KnownStacks;
use self::owners::FutexOwners;
pub use self::rows::{
    LockAggregation, LockColumn, LockDetail, LockKey, LockRow, LockStack, LockSums,
};
use self::run_queue::RunQueueTimes;
pub use self::sequences::BadSequences;
use self::sequences::{LockEvent, Sequences, Step};
use self::user::{BegunWait, EndedCall, FutexAction, UserWaits};
pub use self::user::{FUTEX, FUTEX_EVENTS, FUTEX_PI};
pub use self::wait_chains::WaitChains;
pub use self::wait_graph::{ChainedWait, HeldWait, WaitChain, WaitCycle};
use crate::sched::LostStretches;
use crate::{ContextSwitch, EventContext, Loss, Observer};

/// The tracepoints of waits for locks of the kernel, `system:name`.
pub const CONTENTION_EVENTS: [&str; 2] = ["lock:contention_begin", "lock:contention_end"];

/// The tracepoints of lockdep, `system:name`. Kernels without CONFIG_LOCK_STAT lack the second and the third.
pub const LOCKDEP_EVENTS: [&str; 4] = [
    "lock:lock_acquire",
    "lock:lock_acquired",
    "lock:lock_contended",
    "lock:lock_release",
];

/// Which waits are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockSelection {
    /// Only waits whose flags are one of these values; all if `None`.
    pub flags: Option<Vec<u64>>,
    /// Only waits for locks at these addresses, and for locks with `names`; all if `None`.
    pub addresses: Option<Vec<Range<u64>>>,
    /// Names of locks as in [`CapturedLock::name`]; ignored if `addresses` is `None`.
    pub names: Vec<String>,
}

impl LockSelection {
    fn accepts(&self, address: u64, flags: u64, name: Option<&str>) -> bool {
        let is_named = || name.is_some_and(|name| self.names.iter().any(|known| known == name));
        let is_lock = |ranges: &Vec<Range<u64>>| {
            ranges.iter().any(|range| range.contains(&address)) || is_named()
        };
        let has_flags = |selected: &Vec<u64>| selected.contains(&flags);
        self.addresses.as_ref().is_none_or(is_lock) && self.flags.as_ref().is_none_or(has_flags)
    }
}

/// Passed to [`LockContention::begin_now`] for a wait without a record.
const NO_RECORD: Option<&CapturedLock> = None;

/// The lock that a thread begins to wait for, with the flags of the wait.
#[derive(Debug, Clone, Copy)]
struct WaitedLock {
    address: u64,
    flags: u64,
    /// The thread that holds the lock, if known.
    holder: Option<u32>,
}

/// Sums waits.
#[derive(Debug)]
pub struct LockContention {
    aggregation: LockAggregation,
    selection: LockSelection,
    rows: Vec<LockRow>,
    by_key: FxHashMap<LockKey, usize>,
    /// The rows of callers, by the address of a detail. The detail is kept, so that no other detail gets this address.
    by_detail: FxHashMap<usize, (Arc<LockDetail>, usize)>,
    /// States by thread and lock.
    sequences: Sequences,
    /// The waits for locks of user programs.
    user: UserWaits,
    /// The captured holders of futexes.
    owners: FutexOwners,
    /// `None` if the recording has no records of locks of the kernel.
    lock_records: Option<LockRecords>,
    run_queue: RunQueueTimes,
    separates_run_queue: bool,
    /// The threads that waited or have events of lockdep.
    threads: FxHashSet<u32>,
    /// Where perf.data records of any type were lost.
    pub losses: LostStretches,
}

impl LockContention {
    /// Creates an analysis that has no waits yet.
    #[must_use]
    pub fn new(aggregation: LockAggregation, selection: LockSelection) -> Self {
        Self {
            aggregation,
            selection,
            rows: Vec::new(),
            by_key: FxHashMap::default(),
            by_detail: FxHashMap::default(),
            sequences: Sequences::default(),
            user: UserWaits::default(),
            owners: FutexOwners::default(),
            lock_records: None,
            run_queue: RunQueueTimes::default(),
            separates_run_queue: false,
            threads: FxHashSet::default(),
            losses: LostStretches::default(),
        }
    }

    /// Sets the threads of the recording, each as its id and that of its process: only these threads can hold futexes.
    #[must_use]
    pub fn with_threads(mut self, threads: impl IntoIterator<Item = (u32, u32)>) -> Self {
        self.owners = FutexOwners::new(threads);
        self
    }

    /// Joins the waits for locks of the kernel with their records, the samples of [`LOCK_WAITS`].
    #[must_use]
    pub fn with_lock_records(mut self) -> Self {
        self.lock_records = Some(LockRecords::default());
        self
    }

    /// Begins the waits that were kept for records that did not come. Call this after the last event.
    pub fn finish(&mut self) {
        let records = self.lock_records.as_mut();
        for begin in records.map(LockRecords::take_begins).unwrap_or_default() {
            self.begin_now(&begin, NO_RECORD);
        }
    }

    /// Subtracts the time that waiting threads waited for a CPU from their waits. [`LockRow::run_queue`] has this time in any
    /// case, if there are events of the scheduler.
    #[must_use]
    pub fn separating_run_queue(mut self) -> Self {
        self.separates_run_queue = true;
        self
    }

    /// Returns all rows, also those without an ended wait: highest value of `column` first, then by caller and address.
    #[must_use]
    pub fn rows(&self, column: LockColumn) -> Vec<LockRow> {
        let mut rows = self.rows.clone();
        rows.sort_by(|left, right| {
            let order = column.value(right).cmp(&column.value(left));
            order.then_with(|| left.break_tie(right))
        });
        rows
    }

    /// Returns the ids of the threads that waited or have events of lockdep, in ascending order as signed numbers, so
    /// that -1, the id of threads that had exited, comes first.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        let mut threads: Vec<u32> = self.threads.iter().copied().collect();
        threads.sort_unstable_by_key(|tid| tid.cast_signed());
        threads
    }

    /// Returns the number of rows with events in an impossible order, by the event at which the first such order was
    /// found.
    #[must_use]
    pub fn bad_sequences(&self) -> BadSequences {
        self.sequences.bad
    }

    /// Returns the index of the row of a key, created by `create` if it is new.
    fn row(&mut self, key: LockKey, create: impl FnOnce(LockKey) -> LockRow) -> usize {
        let (rows, separates_run_queue) = (&mut self.rows, self.separates_run_queue);
        *self.by_key.entry(key).or_insert_with_key(|key| {
            rows.push(LockRow {
                separates_run_queue,
                ..create(key.clone())
            });
            rows.len() - 1
        })
    }

    /// Begins a wait for a lock of the kernel. If the recording has records, the wait is kept until its record comes or is known
    /// to be missing.
    fn begin(&mut self, begin: BegunLockWait) {
        let Some(records) = &mut self.lock_records else {
            return self.begin_now(&begin, NO_RECORD);
        };
        match records.take_record(&begin.at, begin.address) {
            Some(record) => self.begin_now(&begin, Some(&record)),
            None => {
                // An earlier begin of this thread and lock never got a record.
                if let Some(earlier) = records.add_begin(begin) {
                    self.begin_now(&earlier, NO_RECORD);
                }
            }
        }
    }

    /// Begins a wait for a lock of the kernel with `record`; without one, a later record is not awaited.
    fn begin_now(&mut self, begin: &BegunLockWait, record: Option<&CapturedLock>) {
        let BegunLockWait {
            at,
            address,
            flags,
            detail,
            queued,
        } = begin;
        let name = record.and_then(|record| record.name.as_deref());
        if !self.selection.accepts(*address, *flags, name) || detail.is_excluded {
            self.sequences.skip_begin(at.task.tid, *address);
            return;
        }
        let holder = record.and_then(|record| record.owner);
        let lock = WaitedLock {
            address: *address,
            flags: *flags,
            holder,
        };
        let index = self.row_of_wait(at, lock, detail);
        // A row with waits for several locks has the address of the first, and the name only of that lock.
        if let Some(name) = name
            && let Some(row) = self.rows.get_mut(index)
            && row.address == *address
        {
            row.lock_name.get_or_insert_with(|| name.to_owned());
        }
        let event = LockEvent::at(at, *address).of_row(index);
        let event = event.queued(*queued).held_by(holder);
        self.sequences.step(Step::Begin, event, &mut self.rows);
    }

    /// Returns the index of the row of a wait. The lock is in the process `detail.stack.process`, or in the kernel if this is
    /// `None`.
    fn row_of_wait(
        &mut self,
        at: &EventContext,
        lock: WaitedLock,
        detail: &Arc<LockDetail>,
    ) -> usize {
        self.threads.insert(at.task.tid);
        let WaitedLock {
            address,
            flags,
            holder,
        } = lock;
        let key = match (self.aggregation, detail.stack.process) {
            (LockAggregation::Caller, _) => return self.row_of_caller(address, flags, detail),
            (LockAggregation::Thread, _) => LockKey::Thread(at.task.tid),
            (LockAggregation::Owner, _) => LockKey::Owner(holder),
            (LockAggregation::Cgroup, _) => LockKey::Cgroup(detail.cgroup.unwrap_or_default()),
            (LockAggregation::Address, None) => LockKey::Address(address),
            (LockAggregation::Address, Some(pid)) => LockKey::UserAddress { pid, address },
        };
        self.row(key, |key| LockRow::new(key, address, flags, detail))
    }

    /// Returns the index of the row of a stack: usually without hashing the stack, since details are shared.
    fn row_of_caller(&mut self, address: u64, flags: u64, detail: &Arc<LockDetail>) -> usize {
        let identity = Arc::as_ptr(detail).addr();
        if let Some((_, row)) = self.by_detail.get(&identity) {
            return *row;
        }
        let key = LockKey::Caller(detail.stack.clone());
        let row = self.row(key, |key| LockRow::new(key, address, flags, detail));
        // A detail that nothing else refers to does not come again.
        if Arc::strong_count(detail) > 1 {
            self.by_detail.insert(identity, (Arc::clone(detail), row));
        }
        row
    }

    fn futex(&mut self, at: &EventContext, address: u64, operation: u32, detail: &Arc<LockDetail>) {
        match FutexAction::of(operation) {
            FutexAction::Wait(flags) => {
                // `None` if nothing was captured for this wait so far, `Some(None)` if its holder is unknown.
                let captured = self.owners.take_pending(at, address);
                let holder = captured.flatten().map(|holder| holder.tid);
                // Locks of user programs have no name.
                let lock_name = None;
                if self.selection.accepts(address, flags, lock_name) && !detail.is_excluded {
                    let lock = WaitedLock {
                        address,
                        flags,
                        holder,
                    };
                    let row = self.row_of_wait(at, lock, detail);
                    let begun = BegunWait {
                        address,
                        row,
                        holder,
                        is_captured: captured.is_some(),
                        queued: self.queued(at),
                    };
                    self.user.begin(at, begun, &mut self.rows);
                }
            }
            FutexAction::Wake => self.user.wake(at, address),
            FutexAction::Other => {}
        }
    }

    /// Notes the captured holder of a futex. The call of the wait may be observed before or after this sample.
    fn capture(&mut self, captured: &CapturedWaits) {
        let Some(wait) = self.owners.new_wait(captured) else {
            return;
        };
        let Some(old) = self.user.uncaptured_row(&wait) else {
            return self.owners.add_pending(wait);
        };
        let row = match self.rows.get(old) {
            // The row depends on the holder, which was unknown so far: the wait moves to the row of the captured holder.
            Some(before) if self.aggregation == LockAggregation::Owner => {
                let before = before.clone();
                let key = LockKey::Owner(wait.holder.map(|holder| holder.tid));
                let new = self.row(key, |key| before.with_key(key));
                for (row, change) in [(old, -1), (new, 1)] {
                    if let Some(row) = self.rows.get_mut(row) {
                        row.contended = row.contended.saturating_add_signed(change);
                    }
                }
                new
            }
            _ => old,
        };
        self.user.set_captured(&wait, row);
    }

    /// Returns how long the current thread has waited for CPUs so far, in ns.
    fn queued(&mut self, at: &EventContext) -> u64 {
        self.run_queue.total(at.task.tid, at.time())
    }

    fn end(&mut self, at: &EventContext, address: u64) {
        // A wait that still awaits its record was not begun yet. The record no longer comes, so the wait begins without it.
        let records = self.lock_records.as_mut();
        if let Some(begin) = records.and_then(|records| records.take_begin(at, address)) {
            self.begin_now(&begin, NO_RECORD);
        }
        let event = LockEvent::at(at, address).queued(self.queued(at));
        self.sequences.step(Step::End, event, &mut self.rows);
    }

    /// Handles an event of lockdep. The selection does not apply: `lock contention`, which has one, does not read these events.
    fn lockdep(&mut self, at: &EventContext, step: Step, address: u64, class: &[u8]) {
        let key = match self.aggregation {
            LockAggregation::Thread => LockKey::Thread(at.task.tid),
            _ => LockKey::Address(address),
        };
        self.threads.insert(at.task.tid);
        let row = self.row(key, |key| LockRow::of_class(key, address, class));
        let event = LockEvent::at(at, address).of_row(row);
        self.sequences.step(step, event, &mut self.rows);
    }
}

/// Events at which waits begin have a detail, and so have samples of captured waits and of captured locks. Equal details may be
/// shared.
impl Observer<Option<Arc<LockDetail>>> for LockContention {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: Option<Arc<LockDetail>>) {
        if !self.losses.usable_event(at) {
            return;
        }
        match event {
            TypedEvent::ContentionBegin(event) => {
                let begin = BegunLockWait {
                    at: *at,
                    address: event.lock_addr(),
                    flags: event.flags().value,
                    detail: detail.unwrap_or_default(),
                    queued: self.queued(at),
                };
                self.begin(begin);
            }
            TypedEvent::ContentionEnd(event) => self.end(at, event.lock_addr()),
            TypedEvent::SysEnterFutex(event) => {
                let detail = detail.unwrap_or_default();
                self.futex(at, event.uaddr(), event.op(), &detail);
            }
            TypedEvent::SysExitFutex(event) => {
                let ended = EndedCall {
                    result: event.ret(),
                    queued: self.queued(at),
                };
                self.user.end(at, ended, &mut self.rows);
            }
            TypedEvent::LockAcquire(event) => {
                let step = Step::acquire(event.flags());
                self.lockdep(at, step, event.lockdep_addr(), event.name());
            }
            TypedEvent::LockAcquired(event) => {
                self.lockdep(at, Step::Acquired, event.lockdep_addr(), event.name());
            }
            TypedEvent::LockContended(event) => {
                self.lockdep(at, Step::Contended, event.lockdep_addr(), event.name());
            }
            TypedEvent::LockRelease(event) => {
                self.lockdep(at, Step::Release, event.lockdep_addr(), event.name());
            }
            event => self.run_queue.event(at, &event),
        }
    }

    fn switch(&mut self, at: &EventContext, switch: ContextSwitch) {
        self.run_queue.switch(at, switch);
    }

    fn sample(&mut self, at: &EventContext, detail: Option<Arc<LockDetail>>) {
        let Some(detail) = detail else {
            return;
        };
        if let Some(captured) = &detail.captured {
            self.capture(captured);
        }
        let records = self.lock_records.as_mut();
        if let (Some(records), Some(lock)) = (records, &detail.captured_lock)
            && let Some((begin, record)) = records.add_record(at, lock.as_ref().clone())
        {
            self.begin_now(&begin, Some(&record));
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        if let Some(records) = &mut self.lock_records {
            records.forget_records();
        }
    }
}
