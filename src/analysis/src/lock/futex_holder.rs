//! Which thread holds a futex, as far as the memory of the futex tells.
//!
//! The kernel defines words with priority inheritance (futex(2)): they contain the id of the holder. The layouts of glibc are
//! those of its public headers `bits/struct_mutex.h` and `bits/struct_rwlock.h` of 64-bit architectures.

use super::user::{COMMAND, FutexAction, is_private};

/// The number of bytes in [`FutexMemory`] that precede the futex.
pub const BEFORE_FUTEX: usize = 16;
/// The number of other bytes in [`FutexMemory`]: those of the futex and after it. The first [`MUTEX_MEMORY`] of them are enough
/// for mutexes of glibc.
pub const FROM_FUTEX: usize = 48;
/// The number of bytes of a mutex of glibc from its futex on, up to and including `__spins`: enough to find the owner.
pub const MUTEX_MEMORY: usize = 24;

/// `FUTEX_WAITERS`: other threads wait.
const WAITERS: u32 = 1 << 31;
/// `FUTEX_TID_MASK`.
const TID: u32 = 0x3fff_ffff;
/// The value of a locked mutex of glibc that threads wait for.
const CONTENDED: u32 = 2;
/// The value of a word of a read-write lock of glibc that threads wait for: `1 | PTHREAD_RWLOCK_FUTEX_USED`.
const WAITED_FOR: u32 = 3;
/// `PTHREAD_RWLOCK_WRPHASE` of `__readers`: the lock is a writer's.
const WRITE_PHASE: u32 = 1;
/// The bits for the type in the kind of a mutex: `__kind` in glibc, `_m_type` in musl. The following constants are bits of a
/// kind, too.
const TYPE: u32 = 3;
/// `PTHREAD_MUTEX_ELISION_NP` and `PTHREAD_MUTEX_NO_ELISION_NP`: the bits of a kind for mutexes with and without lock elision in
/// glibc.
const ELISION: u32 = 0x100 | 0x200;
/// The bits that the kind of a mutex with the value [`CONTENDED`] may have. Robust mutexes and those with priority inheritance or
/// protection have other values.
const KINDS: u32 = TYPE | SHARED | ELISION;
/// The bit of a kind for mutexes that processes share, in glibc and musl.
const SHARED: u32 = 0x80;
/// `PTHREAD_MUTEX_ROBUST_NORMAL_NP`: the bit of a kind for robust mutexes in glibc.
const ROBUST: u32 = 0x10;
/// The bits that the kind of a robust mutex may have.
const ROBUST_KINDS: u32 = ROBUST | SHARED | TYPE;
/// The bits of a kind in musl other than [`SHARED`]: type, robust, priority inheritance. The word of a mutex with none of them
/// does not contain the owner's id.
const MUSL_KINDS: u32 = TYPE | 4 | 8;
/// The value of the bits [`TYPE`] of a recursive mutex.
const RECURSIVE: u32 = 1;

/// The object that a futex belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FutexObject {
    /// A mutex.
    Mutex,
    /// A read-write lock.
    RwLock,
    /// A lock with priority inheritance.
    PriorityInheritance,
    /// A thread that another one joins.
    Thread,
    /// Unknown: a condition variable, a semaphore or a lock of another library.
    Unknown,
}

/// The thread that a wait is for: it holds the lock, or is joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexHolder {
    /// The id of the thread. From [`FutexCall::holder`], it is the id in the PID namespace of the waiting thread.
    pub tid: u32,
    /// What is held, or the thread itself.
    pub object: FutexObject,
}

/// The memory around a futex. What could not be read is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexMemory([u8; BEFORE_FUTEX + FROM_FUTEX]);

impl FutexMemory {
    /// Takes bytes that begin [`BEFORE_FUTEX`] bytes before the futex.
    #[must_use]
    pub fn around(bytes: &[u8]) -> Self {
        Self::placed(0, bytes)
    }

    /// Takes bytes that begin at the futex.
    #[must_use]
    pub fn starting_at_futex(bytes: &[u8]) -> Self {
        Self::placed(BEFORE_FUTEX, bytes)
    }

    fn placed(start: usize, bytes: &[u8]) -> Self {
        let mut memory = [0; BEFORE_FUTEX + FROM_FUTEX];
        let places = memory.iter_mut().skip(start);
        for (place, byte) in places.zip(bytes) {
            *place = *byte;
        }
        Self(memory)
    }

    /// Returns the word at an offset from the futex, 0 if it is outside.
    fn word(&self, offset: isize) -> u32 {
        let at = BEFORE_FUTEX.checked_add_signed(offset);
        let bytes = at.and_then(|at| self.0.get(at..)?.first_chunk());
        bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }
}

/// A call of futex(2); [`FutexCall::is_wait`] tells whether it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexCall {
    /// The operation with its flags.
    pub operation: u32,
    /// The value that the futex is expected to have.
    pub value: u32,
}

impl FutexCall {
    /// Whether the call waits.
    #[must_use]
    pub fn is_wait(self) -> bool {
        matches!(FutexAction::of(self.operation), FutexAction::Wait(_))
    }

    /// Whether the futex may be shared by processes.
    #[must_use]
    pub fn is_shared(self) -> bool {
        !is_private(self.operation)
    }

    /// Returns the holder of the futex. `memory` is that of a 64-bit program in this machine's byte order; `is_thread_id` tells
    /// whether the futex is the word with a thread's id that the kernel clears when this thread ends (for pthread_join(3)).
    ///
    /// `None` if the memory does not tell it. The number found may be no thread: the caller checks whether the process has a
    /// thread of this id or, if the futex may be shared, whether any process has one.
    #[must_use]
    pub fn holder(self, memory: &FutexMemory, is_thread_id: bool) -> Option<FutexHolder> {
        let word = memory.word(0);
        let held = |tid, object| (tid != 0).then_some(FutexHolder { tid, object });
        match self.operation & COMMAND {
            // LOCK_PI, LOCK_PI2.
            6 | 13 => held(word & TID, FutexObject::PriorityInheritance),
            // WAIT, WAIT_BITSET.
            0 | 9 => match self.value {
                // The first arm, since in a PID namespace the id may be 2 or 3: CONTENDED and WAITED_FOR of the next arms. Only
                // calls that are not private wait for the end of a thread: the kernel wakes them as for memory that processes
                // share.
                value if is_thread_id && value == word && self.is_shared() => {
                    held(word, FutexObject::Thread)
                }
                CONTENDED => held(mutex_owner(memory, self.is_shared())?, FutexObject::Mutex),
                WAITED_FOR if word == WAITED_FOR => held(self.writer(memory)?, FutexObject::RwLock),
                // A mutex whose word contains the owner's id: a robust one of glibc, or one of musl.
                value
                    if value & word & WAITERS != 0
                        && (!self.is_shared() || word_has_owner(memory)) =>
                {
                    held(word & TID, FutexObject::Mutex)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the writer that holds a `pthread_rwlock_t` of glibc, whose futex is `__wrphase_futex` or `__writers_futex`. The
    /// writer's id is set after the lock is taken and cleared before the lock is released. Readers are unknown.
    fn writer(self, memory: &FutexMemory) -> Option<u32> {
        // The offsets in the lock: that of the futex of the wait, and that of the other futex.
        [(8, 12), (12, 8)].into_iter().find_map(|(waited, other)| {
            // The word at an offset in the lock.
            let word = |offset: isize| memory.word(offset - waited);
            // `__pad3`, `__pad4`, `__rwelision`, `__pad1`, `__pad2`.
            let padding = [16, 20, 32, 36, 40, 44].map(word);
            let is_lock = matches!(word(other), 1 | WAITED_FOR)
                && padding == [0; 6]
                && word(0) & WRITE_PHASE != 0
                // `__flags`, the kind of lock (`PTHREAD_RWLOCK_PREFER_*_NP`, 0 to 2), and `__shared`.
                && word(48) <= 2
                && word(28) == u32::from(self.is_shared());
            // `__cur_writer`.
            is_lock.then(|| word(24))
        })
    }
}

/// Returns the owner in a locked `pthread_mutex_t` of glibc: `__lock`, `__count`, `__owner`, `__nusers`, `__kind`, `__spins`. A
/// thread sets the owner after it took the lock and clears it before it releases the lock, so the owner is 0 or right. `None` if
/// the memory is no such mutex.
fn mutex_owner(memory: &FutexMemory, is_shared: bool) -> Option<u32> {
    let [lock, count, owner, users, kind] = [0, 4, 8, 12, 16].map(|offset| memory.word(offset));
    let is_mutex = lock == CONTENDED
        && (kind & SHARED != 0) == is_shared
        && kind & !KINDS == 0
        && (count == 0 || kind & TYPE == RECURSIVE)
        // A larger number may be part of a pointer in another object.
        && (1..1 << 16).contains(&users);
    is_mutex.then_some(owner)
}

/// Whether the futex of a call that is not private, a word with the bit [`WAITERS`], is that of a mutex with the owner's id in
/// the word. Such a mutex is a robust one of glibc, whose kind is 16 bytes after the word, or one of musl that processes share,
/// whose kind precedes the word. Calls for robust mutexes of glibc are never private, since the kernel wakes the next thread as
/// for shared memory when an owner ends.
fn word_has_owner(memory: &FutexMemory) -> bool {
    let [glibc, musl] = [16, -4].map(|offset| memory.word(offset));
    let is_glibc = glibc & !ROBUST_KINDS == 0 && glibc & ROBUST != 0;
    is_glibc || (musl & !MUSL_KINDS == SHARED && musl & MUSL_KINDS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `is_thread_id` of [`FutexCall::holder`].
    const NO_THREAD_ID: bool = false;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn memory(words: [u32; 6]) -> FutexMemory {
        FutexMemory::starting_at_futex(&bytes(&words))
    }

    fn tid(wait: FutexCall, words: [u32; 6]) -> Option<u32> {
        let holder = wait.holder(&memory(words), NO_THREAD_ID);
        holder.map(|holder| holder.tid)
    }

    /// As [`tid`], if the futex is the word with a thread's id that the kernel clears when this thread ends.
    fn joined_tid(wait: FutexCall, words: [u32; 6]) -> Option<u32> {
        let is_thread_id = true;
        let holder = wait.holder(&memory(words), is_thread_id);
        holder.map(|holder| holder.tid)
    }

    #[test]
    fn owners_of_mutexes_are_found_and_other_words_are_not_taken_for_mutexes() {
        let wait = FutexCall {
            operation: 0x80,
            value: 2,
        };
        let owner = |words| tid(wait, words);
        assert_eq!(owner([2, 0, 77, 1, 0, 0]), Some(77));
        // Recursive; then error checking and without elision.
        assert_eq!(owner([2, 3, 77, 1, 1, 0]), Some(77));
        assert_eq!(owner([2, 0, 77, 1, 0x202, 0]), Some(77));
        // Shared by processes: neither the call nor the kind of the mutex may be private.
        let shared = FutexCall {
            operation: 0,
            ..wait
        };
        assert_eq!(tid(shared, [2, 0, 77, 1, 0x80, 0]), Some(77));
        assert_eq!(tid(shared, [2, 0, 77, 1, 0, 0]), None);
        for other in [
            // Released meanwhile, or just being taken.
            [1, 0, 77, 1, 0, 0],
            [2, 0, 0, 1, 0, 0],
            // A count without recursion, no users, an unknown kind, a shared mutex in a private call, users that may be part of a
            // pointer.
            [2, 1, 77, 1, 0, 0],
            [2, 0, 77, 0, 0, 0],
            [2, 0, 77, 1, 0x1000, 0],
            [2, 0, 77, 1, 0x80, 0],
            [2, 0, 77, 1 << 16, 0, 0],
        ] {
            assert_eq!(owner(other), None, "{other:?}");
        }
        let timed = FutexCall {
            operation: 0x189,
            value: 2,
        };
        assert_eq!(tid(timed, [2, 0, 77, 1, 0, 0]), Some(77));
        // A condition variable or a semaphore.
        let other = FutexCall {
            operation: 0x189,
            value: 0,
        };
        assert_eq!(tid(other, [0, 0, 77, 1, 0, 0]), None);
        let truncated = FutexMemory::starting_at_futex(&bytes(&[2, 0, 77]));
        assert_eq!(wait.holder(&truncated, NO_THREAD_ID), None);
    }

    #[test]
    fn writers_of_read_write_locks_are_found() {
        // `pthread_rwlock_t`, locked by the writer 77: 14 words.
        const LOCK: [u32; 14] = [9, 1, 3, 1, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0];
        // `place` is the index of the word in the lock that is waited for.
        let writer = |operation, lock: [u32; 14], place: usize| {
            let padded = [[0; 4].as_slice(), &lock, &[0; 4]].concat();
            let memory = FutexMemory::around(&bytes(&padded[place..place + 16]));
            let wait = FutexCall {
                operation,
                value: 3,
            };
            wait.holder(&memory, NO_THREAD_ID)
        };
        let with = |at: usize, word: u32| {
            let mut lock = LOCK;
            lock[at] = word;
            lock
        };
        let expected = Some(FutexHolder {
            tid: 77,
            object: FutexObject::RwLock,
        });
        assert_eq!(writer(0x189, LOCK, 2), expected);
        assert_eq!(writer(0x189, with(3, 3), 3), expected);
        assert_eq!(writer(0x109, with(7, 1), 2), expected);
        for (operation, lock, place) in [
            // A private wait for a shared lock, and the other way round; no write phase; no writer; a value that the other futex
            // cannot have (1 or 3 is expected); twice padding other than 0; unknown flags; a wait for a word that is no futex.
            (0x189, with(7, 1), 2),
            (0x109, LOCK, 2),
            (0x189, with(0, 8), 2),
            (0x189, with(6, 0), 2),
            (0x189, with(3, 0), 2),
            (0x189, with(4, 1), 2),
            (0x189, with(11, 1), 2),
            (0x189, with(12, 3), 2),
            (0x189, with(3, 3), 1),
        ] {
            assert_eq!(writer(operation, lock, place), None, "{lock:?}");
        }
    }

    #[test]
    fn thread_ids_in_futex_words_are_those_of_holders() {
        let priority = FutexCall {
            operation: 0x86,
            value: 0,
        };
        let expected = FutexHolder {
            tid: 77,
            object: FutexObject::PriorityInheritance,
        };
        let words = memory([WAITERS | 77, 0, 0, 0, 0, 0]);
        assert_eq!(priority.holder(&words, NO_THREAD_ID), Some(expected));
        // A private wait for a robust mutex, so one of musl: calls for those of glibc are never private.
        let robust = FutexCall {
            operation: 0x80,
            value: WAITERS | 77,
        };
        assert_eq!(tid(robust, [WAITERS | 77, 0, 0, 0, 0, 0]), Some(77));
        // Its owner died: no thread holds it.
        assert_eq!(tid(robust, [WAITERS | 1 << 30, 0, 0, 0, 0, 0]), None);
        assert_eq!(tid(robust, [0, 0, 0, 0, 0, 0]), None);
        // If processes may share the word, the kind of the mutex must show that the word has the owner: first kinds of glibc,
        // then of musl.
        let shared = FutexCall {
            operation: 0,
            ..robust
        };
        let word = WAITERS | 77;
        for (kind, owner) in [
            (0x90, Some(77)),
            (0x11, Some(77)),
            (0x80, None),
            (0x1010, None),
            (0, None),
        ] {
            assert_eq!(tid(shared, [word, 0, 0, 0, kind, 0]), owner, "{kind:#x}");
        }
        for (kind, owner) in [(0x84, Some(77)), (0x81, Some(77)), (0x80, None), (4, None)] {
            let musl = FutexMemory::around(&bytes(&[0, 0, 0, kind, word]));
            let holder = shared.holder(&musl, NO_THREAD_ID);
            assert_eq!(holder.map(|holder| holder.tid), owner, "{kind:#x}");
        }
        // The wait for the end of a thread is not private.
        let join = FutexCall {
            operation: 0x109,
            value: 77,
        };
        assert_eq!(joined_tid(join, [77, 0, 0, 0, 0, 0]), Some(77));
        for id in [2, 3] {
            let join = FutexCall { value: id, ..join };
            assert_eq!(joined_tid(join, [id, 0, 0, 0, 0, 0]), Some(id));
        }
        assert_eq!(tid(join, [77, 0, 0, 0, 0, 0]), None);
        let private = FutexCall {
            operation: 0x189,
            value: 77,
        };
        assert_eq!(joined_tid(private, [77, 0, 0, 0, 0, 0]), None);
        let wake = FutexCall {
            operation: 0x81,
            value: 2,
        };
        assert!(!wake.is_wait() && join.is_wait());
        assert_eq!(tid(wake, [2, 0, 77, 1, 0, 0]), None);
    }
}
