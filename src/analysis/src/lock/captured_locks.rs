//! What the BPF program of `lock record --owners` writes when a wait for a lock of the kernel begins, and its join with the
//! `lock:contention_begin` events. In this file, a record is the BPF program's sample about one wait.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::rows::LockDetail;
use crate::EventContext;

/// The name of the event whose samples are the BPF program's records.
pub const LOCK_WAITS: &str = "lock-waits";

/// The names of locks that the BPF program recognises without a symbol, as perf 7.2 shows them: `mm_struct::mmap_lock` and
/// `sighand_struct::siglock` of the waiting task, and the lock of a run queue. In records they are numbered from 1.
pub const KNOWN_LOCKS: [&str; 3] = ["mmap_lock", "siglock", "rq_lock"];
/// Stored instead of the number of a name if the lock is in an object of a slab cache. The name of the cache follows.
const SLAB: u32 = 4;

// Offsets of the fields in bytes, as in `rperf_bpf`.
/// The address of the lock.
const ADDRESS: usize = 0;
/// The thread id of the owner, 0 if unknown.
const OWNER: usize = 8;
/// The number of the name, 0 if unknown.
const NAME: usize = 12;
/// The name of the slab cache, if the number is [`SLAB`].
const CACHE: usize = 16;

/// The lock of a wait that begins, as a sample of [`LOCK_WAITS`] describes it: the record of the wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLock {
    /// The address of the lock.
    pub address: u64,
    /// The thread that holds the lock, if known.
    pub owner: Option<u32>,
    /// What the lock is, if known: one of [`KNOWN_LOCKS`], or the name of a slab cache after `&`.
    pub name: Option<Arc<str>>,
}

impl CapturedLock {
    /// Decodes the raw data of a sample in this machine's byte order. `None` if the data are truncated.
    #[must_use]
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let name = match word(NAME)? {
            0 => None,
            SLAB => {
                let cache = raw.get(CACHE..)?.split(|byte| *byte == 0).next()?;
                Some(format!("&{}", String::from_utf8_lossy(cache)).into())
            }
            number => {
                let index = usize::try_from(number).ok()?.checked_sub(1)?;
                KNOWN_LOCKS.get(index).map(|name| Arc::from(*name))
            }
        };
        Some(Self {
            address: u64::from_ne_bytes(*raw.get(ADDRESS..)?.first_chunk()?),
            owner: Some(word(OWNER)?).filter(|owner| *owner != 0),
            name,
        })
    }
}

/// The start of a wait for a lock of the kernel, from its `lock:contention_begin`.
#[derive(Debug, Clone)]
pub(super) struct BegunLockWait {
    pub(super) at: EventContext,
    pub(super) address: u64,
    pub(super) flags: u64,
    pub(super) detail: Arc<LockDetail>,
    /// How long the thread had waited for a CPU in total when this wait began, in ns.
    pub(super) queued: u64,
}

/// An event this many ns or more after a record is of a later wait. The record's own event is then missing: the BPF program may
/// write records before the events of the recording are enabled. The record and the event of one wait are far less than this
/// apart: they are written one directly after the other.
const MAX_DISTANCE: u64 = 100_000_000;

/// Id of the waiting thread, the CPU if it is an idle thread, and address of the lock. Idle threads have the id 0 on all CPUs.
type WaitPlace = (u32, Option<u32>, u64);

/// Records whose waits have not begun yet, and starts of waits whose records may follow: the kernel writes the record and the
/// event of one wait in either order, one directly after the other.
#[derive(Debug, Default)]
pub(super) struct LockRecords {
    /// Records with their times.
    records: FxHashMap<WaitPlace, (u64, CapturedLock)>,
    begins: FxHashMap<WaitPlace, BegunLockWait>,
}

impl LockRecords {
    fn place(at: &EventContext, address: u64) -> WaitPlace {
        let cpu = if at.task.tid == 0 { at.cpu } else { None };
        (at.task.tid, cpu, address)
    }

    /// Adds a record, unless the start of its wait was added before: then removes the start and returns both.
    pub(super) fn add_record(
        &mut self,
        at: &EventContext,
        record: CapturedLock,
    ) -> Option<(BegunLockWait, CapturedLock)> {
        let place = Self::place(at, record.address);
        match self.begins.remove(&place) {
            Some(begin) => Some((begin, record)),
            None => {
                self.records.insert(place, (at.time(), record));
                None
            }
        }
    }

    /// Removes the record of a wait that begins, and returns it unless it is too old to be of this wait ([`MAX_DISTANCE`]).
    pub(super) fn take_record(&mut self, at: &EventContext, address: u64) -> Option<CapturedLock> {
        let (time, record) = self.records.remove(&Self::place(at, address))?;
        (at.time().saturating_sub(time) < MAX_DISTANCE).then_some(record)
    }

    /// Adds the start of a wait without a record so far. Returns an earlier start for this thread and lock, which got no record.
    pub(super) fn add_begin(&mut self, begin: BegunLockWait) -> Option<BegunLockWait> {
        let place = Self::place(&begin.at, begin.address);
        self.begins.insert(place, begin)
    }

    /// Removes and returns the start of a wait that ends, if it got no record.
    pub(super) fn take_begin(&mut self, at: &EventContext, address: u64) -> Option<BegunLockWait> {
        self.begins.remove(&Self::place(at, address))
    }

    /// Removes and returns all starts of waits without a record, in order of time.
    pub(super) fn take_begins(&mut self) -> Vec<BegunLockWait> {
        let mut begins: Vec<BegunLockWait> = self.begins.drain().map(|(_, begin)| begin).collect();
        begins.sort_by_key(|begin| begin.at.order);
        begins
    }

    /// Forgets the records whose waits have not begun. Called when the recording has lost events: those of these waits may be
    /// among them.
    pub(super) fn forget_records(&mut self) {
        self.records.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rperf_replay::Order;

    use super::*;
    use crate::TaskId;

    /// Returns the raw data of a record.
    fn raw(address: u64, owner: u32, name: u32, cache: &[u8]) -> Vec<u8> {
        let words = [owner, name].map(u32::to_ne_bytes).concat();
        [&address.to_ne_bytes()[..], &words, cache].concat()
    }

    #[test]
    fn owners_and_names_are_decoded() {
        let decoded = |bytes: &[u8]| CapturedLock::decode(bytes).expect("a record");
        let known = decoded(&raw(5, 77, 1, &[]));
        assert_eq!(
            (known.address, known.owner, known.name.as_deref()),
            (5, Some(77), Some("mmap_lock"))
        );
        let slab = decoded(&raw(5, 0, 4, b"kmalloc-64\0\0rest"));
        assert_eq!(
            (slab.owner, slab.name.as_deref()),
            (None, Some("&kmalloc-64"))
        );
        assert_eq!(decoded(&raw(5, 9, 0, &[])).name, None);
        // The number of a name that only a newer version knows.
        assert_eq!(decoded(&raw(5, 9, 5, &[])).name, None);
        // Truncated in the number of the name.
        assert_eq!(CapturedLock::decode(&raw(5, 0, 3, &[])[..14]), None);
    }

    #[test]
    fn a_record_long_before_a_wait_is_not_that_of_the_wait() {
        let at = |time| EventContext {
            order: Order { time, position: 0 },
            event: None,
            cpu: Some(0),
            task: TaskId { pid: 1, tid: 1 },
        };
        let record = CapturedLock::decode(&raw(5, 77, 1, &[])).expect("a record");
        // `begin` is the time at which the wait begins; the record is from time 10.
        for (begin, is_found) in [(1000, true), (MAX_DISTANCE + 10, false)] {
            let mut records = LockRecords::default();
            assert!(records.add_record(&at(10), record.clone()).is_none());
            assert_eq!(records.take_record(&at(begin), 5).is_some(), is_found);
        }
    }

    proptest! {
        #[test]
        fn decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            drop(CapturedLock::decode(&bytes));
        }
    }
}
