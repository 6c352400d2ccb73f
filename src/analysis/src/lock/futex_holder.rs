//! Which thread holds a futex, as far as the memory of the futex tells.
//!
//! The kernel defines words with priority inheritance (futex(2)): they contain the id of the holder. The layouts of glibc are those of its public headers
//! `bits/struct_mutex.h` and `pthread_internals` of 64-bit architectures.

use super::user::{FutexCall, is_private};

/// The number of bytes that [`FutexWait::holder`] needs, from the futex on.
pub const FUTEX_MEMORY: usize = 24;

/// `FUTEX_WAITERS`: other threads wait.
const WAITERS: u32 = 1 << 31;
/// `FUTEX_TID_MASK`.
const TID: u32 = 0x3fff_ffff;
/// The value of a locked mutex of glibc that threads wait for.
const CONTENDED: u32 = 2;
/// Bits that the kind of such a mutex may have: type, shared by processes, with or without elision. Robust mutexes and those with
/// priorities have other values.
const KINDS: u32 = 3 | 0x80 | 0x100 | 0x200;
/// The type of a recursive mutex.
const RECURSIVE: u32 = 1;

/// The object that a futex belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FutexObject {
    /// A mutex.
    Mutex,
    /// A lock with priority inheritance.
    PriorityInheritance,
    /// A thread that another one joins.
    Thread,
    /// Unknown: a condition variable, a semaphore or a lock of another library.
    Unknown,
}

/// The thread that has to act before a wait ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexHolder {
    /// The id of the thread, as the program sees it.
    pub tid: u32,
    /// Mutex, or thread.
    pub object: FutexObject,
}

/// A call of futex(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FutexWait {
    /// The operation with its flags.
    pub operation: u32,
    /// The value that the futex is expected to have.
    pub value: u32,
}

impl FutexWait {
    /// Whether the call waits.
    #[must_use]
    pub fn is_wait(self) -> bool {
        matches!(FutexCall::of(self.operation), FutexCall::Wait(_))
    }

    /// Returns the holder of the futex. `memory` are the bytes from the futex on, of a 64-bit program in this machine's byte order;
    /// `is_thread_id` tells whether the futex is the word of a thread that is cleared when the thread ends.
    ///
    /// `None` if the memory does not tell it. The caller checks whether the process has such a thread: any other number is no holder.
    #[must_use]
    pub fn holder(self, memory: &[u8], is_thread_id: bool) -> Option<FutexHolder> {
        let word = word(memory, 0)?;
        let held = |tid, object| (tid != 0).then_some(FutexHolder { tid, object });
        match self.operation & 0x7f {
            // LOCK_PI, LOCK_PI2.
            6 | 13 => held(word & TID, FutexObject::PriorityInheritance),
            // WAIT, WAIT_BITSET.
            0 | 9 => match self.value {
                CONTENDED => held(mutex_owner(memory)?, FutexObject::Mutex),
                value if value & word & WAITERS != 0 => held(word & TID, FutexObject::Mutex),
                // The kernel wakes those that wait for the end of a thread as for memory shared by processes.
                value if is_thread_id && value == word && !is_private(self.operation) => {
                    held(word, FutexObject::Thread)
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the owner in a locked `pthread_mutex_t` of glibc: `__lock`, `__count`, `__owner`, `__nusers`, `__kind`, `__spins`. A thread sets the owner after
/// it took the lock and clears it before it releases the lock, so it is 0 or right.
fn mutex_owner(memory: &[u8]) -> Option<u32> {
    let [lock, count, owner, users, kind] = [0, 4, 8, 12, 16].map(|offset| word(memory, offset));
    let (count, users, kind) = (count?, users?, kind?);
    let is_mutex = lock? == CONTENDED
        && kind & !KINDS == 0
        && (count == 0 || kind & 3 == RECURSIVE)
        && (1..1 << 16).contains(&users);
    owner.filter(|_| is_mutex)
}

fn word(memory: &[u8], offset: usize) -> Option<u32> {
    let bytes = memory.get(offset..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(words: [u32; 6]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn tid(wait: FutexWait, words: [u32; 6], is_thread_id: bool) -> Option<u32> {
        let holder = wait.holder(&memory(words), is_thread_id);
        holder.map(|holder| holder.tid)
    }

    #[test]
    fn owners_of_mutexes_are_found_and_other_words_are_not_taken_for_mutexes() {
        let wait = FutexWait {
            operation: 0x80,
            value: 2,
        };
        let owner = |words| tid(wait, words, false);
        assert_eq!(owner([2, 0, 77, 1, 0, 0]), Some(77));
        // Recursive, error checking, shared, without elision.
        assert_eq!(owner([2, 3, 77, 1, 1, 0]), Some(77));
        assert_eq!(owner([2, 0, 77, 1, 0x282, 0]), Some(77));
        for other in [
            // Released meanwhile, or just being taken.
            [1, 0, 77, 1, 0, 0],
            [2, 0, 0, 1, 0, 0],
            // No count without recursion, no users, an unknown kind, a pointer.
            [2, 1, 77, 1, 0, 0],
            [2, 0, 77, 0, 0, 0],
            [2, 0, 77, 1, 0x1000, 0],
            [2, 0, 77, 1 << 16, 0, 0],
        ] {
            assert_eq!(owner(other), None, "{other:?}");
        }
        let timed = FutexWait {
            operation: 0x189,
            value: 2,
        };
        assert_eq!(tid(timed, [2, 0, 77, 1, 0, 0], false), Some(77));
        // A condition variable or a semaphore.
        let other = FutexWait {
            operation: 0x189,
            value: 0,
        };
        assert_eq!(tid(other, [0, 0, 77, 1, 0, 0], false), None);
        assert_eq!(wait.holder(&memory([2, 0, 77, 1, 0, 0])[..16], false), None);
    }

    #[test]
    fn words_with_an_id_name_the_holder() {
        let priority = FutexWait {
            operation: 0x86,
            value: 0,
        };
        let expected = FutexHolder {
            tid: 77,
            object: FutexObject::PriorityInheritance,
        };
        let words = memory([WAITERS | 77, 0, 0, 0, 0, 0]);
        assert_eq!(priority.holder(&words, false), Some(expected));
        let robust = FutexWait {
            operation: 0x80,
            value: WAITERS | 77,
        };
        assert_eq!(tid(robust, [WAITERS | 77, 0, 0, 0, 0, 0], false), Some(77));
        // Its owner died: no thread holds it.
        assert_eq!(tid(robust, [WAITERS | 1 << 30, 0, 0, 0, 0, 0], false), None);
        assert_eq!(tid(robust, [0, 0, 0, 0, 0, 0], false), None);
        // The wait for the end of a thread is not private.
        let join = FutexWait {
            operation: 0x109,
            value: 77,
        };
        assert_eq!(tid(join, [77, 0, 0, 0, 0, 0], true), Some(77));
        assert_eq!(tid(join, [77, 0, 0, 0, 0, 0], false), None);
        let private = FutexWait {
            operation: 0x189,
            value: 77,
        };
        assert_eq!(tid(private, [77, 0, 0, 0, 0, 0], true), None);
        let wake = FutexWait {
            operation: 0x81,
            value: 2,
        };
        assert!(!wake.is_wait() && join.is_wait());
        assert_eq!(tid(wake, [2, 0, 77, 1, 0, 0], false), None);
    }
}
