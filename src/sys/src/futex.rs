//! Fast user-space locks (futex(2)), and locking of a process's memory in RAM.

use std::io;
use std::ptr;
use std::sync::atomic::AtomicU32;

/// `PR_FUTEX_HASH` and `PR_FUTEX_HASH_SET_SLOTS` (linux/prctl.h, Linux 6.16).
const PR_FUTEX_HASH: i32 = 78;
const PR_FUTEX_HASH_SET_SLOTS: libc::c_ulong = 1;

/// Which threads may wait on a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutexScope {
    /// Those of one process.
    Private,
    /// Those of all processes that map the word.
    Shared,
}

impl FutexScope {
    fn operation(self, operation: i32) -> i32 {
        match self {
            Self::Private => operation | libc::FUTEX_PRIVATE_FLAG,
            Self::Shared => operation,
        }
    }

    /// If the word has the expected value, waits until this thread is woken (`FUTEX_WAIT`).
    ///
    /// # Errors
    /// What futex(2) reports: `EAGAIN` if the word has another value, `EINTR`.
    pub fn wait(self, word: &AtomicU32, expected: u32) -> io::Result<()> {
        self.call(libc::FUTEX_WAIT, &Arguments::of(word, expected))
            .map(drop)
    }

    /// Wakes up to `most` waiting threads; returns how many were woken (`FUTEX_WAKE`).
    ///
    /// # Errors
    /// What futex(2) reports.
    pub fn wake(self, word: &AtomicU32, most: u32) -> io::Result<u32> {
        self.call(libc::FUTEX_WAKE, &Arguments::of(word, most))
    }

    /// If `from` has the expected value, makes up to `most` of the threads that wait on it wait on `to` instead, without waking
    /// any; returns how many were moved (`FUTEX_CMP_REQUEUE`).
    ///
    /// # Errors
    /// What futex(2) reports: `EAGAIN` if `from` has another value.
    pub fn requeue(
        self,
        from: &AtomicU32,
        to: &AtomicU32,
        expected: u32,
        most: u32,
    ) -> io::Result<u32> {
        let woken = 0;
        let arguments = Arguments::of(from, woken).moving(to, expected, most);
        self.call(libc::FUTEX_CMP_REQUEUE, &arguments)
    }

    /// Acquires a lock with priority inheritance (`FUTEX_LOCK_PI`). The word must be used for nothing else.
    ///
    /// # Errors
    /// What futex(2) reports: `EDEADLK` if this thread has the lock already. After a signal, the kernel restarts the call.
    pub fn lock_pi(self, word: &AtomicU32) -> io::Result<()> {
        self.call(libc::FUTEX_LOCK_PI, &Arguments::of(word, 0))
            .map(drop)
    }

    /// Releases a lock with priority inheritance (`FUTEX_UNLOCK_PI`).
    ///
    /// # Errors
    /// What futex(2) reports: `EPERM` if this thread does not have it.
    pub fn unlock_pi(self, word: &AtomicU32) -> io::Result<()> {
        self.call(libc::FUTEX_UNLOCK_PI, &Arguments::of(word, 0))
            .map(drop)
    }

    /// If `word` has the expected value, waits on it until the thread was moved to the lock `to` and has acquired it
    /// (`FUTEX_WAIT_REQUEUE_PI`).
    ///
    /// # Errors
    /// What futex(2) reports: `EAGAIN` if `word` has another value, or if the wait ends without the lock, such as by a signal.
    pub fn wait_requeue_pi(
        self,
        word: &AtomicU32,
        expected: u32,
        to: &AtomicU32,
    ) -> io::Result<()> {
        let arguments = Arguments {
            second: Some(to),
            ..Arguments::of(word, expected)
        };
        self.call(libc::FUTEX_WAIT_REQUEUE_PI, &arguments).map(drop)
    }

    /// If `from` has the expected value, lets one waiting thread acquire the lock `to`, if that is free, and moves up to `most`
    /// others to it; returns how many threads acquired it or were moved (`FUTEX_CMP_REQUEUE_PI`).
    ///
    /// # Errors
    /// What futex(2) reports: `EAGAIN` if `from` has another value.
    pub fn requeue_pi(
        self,
        from: &AtomicU32,
        to: &AtomicU32,
        expected: u32,
        most: u32,
    ) -> io::Result<u32> {
        // The kernel requires 1: the thread that acquires the lock is woken.
        let woken = 1;
        let arguments = Arguments::of(from, woken).moving(to, expected, most);
        self.call(libc::FUTEX_CMP_REQUEUE_PI, &arguments)
    }

    /// Calls futex(2) without a time limit.
    fn call(self, operation: i32, arguments: &Arguments<'_>) -> io::Result<u32> {
        let second = arguments.second.map_or(ptr::null_mut(), AtomicU32::as_ptr);
        // SAFETY: the words are aligned and live during the call; the kernel accesses them atomically. The fourth argument is
        // `val2` or a pointer to the time limit; 0 is no limit.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex,
                arguments.word.as_ptr(),
                self.operation(operation),
                arguments.value,
                arguments.most as usize,
                second,
                arguments.expected,
            )
        };
        u32::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

/// Arguments of futex(2).
struct Arguments<'a> {
    /// `uaddr`.
    word: &'a AtomicU32,
    /// `val`: the expected value of a wait, or the maximum number of threads that are woken; ignored by `FUTEX_LOCK_PI` and
    /// `FUTEX_UNLOCK_PI`.
    value: u32,
    /// `uaddr2`.
    second: Option<&'a AtomicU32>,
    /// `val2`: the maximum number of threads that are moved. `most` of [`FutexScope::wake`] is passed as `value`.
    most: u32,
    /// `val3`: the value that is expected when threads are moved.
    expected: u32,
}

impl<'a> Arguments<'a> {
    /// Arguments of an operation on one word.
    fn of(word: &'a AtomicU32, value: u32) -> Self {
        Self {
            word,
            value,
            second: None,
            most: 0,
            expected: 0,
        }
    }

    /// Adds the second word, the expected value of the first, and the maximum number of threads that are moved. `value` remains
    /// the maximum number of threads that are woken.
    fn moving(self, to: &'a AtomicU32, expected: u32, most: u32) -> Self {
        Self {
            second: Some(to),
            expected,
            most,
            ..self
        }
    }
}

/// Sets the number of buckets of this process's table of private futexes (prctl(2), Linux 6.16). With 0, the table shared by
/// all processes is used.
///
/// # Errors
/// What prctl(2) reports: `EINVAL` on older kernels, for 1, or for a number that is neither 0 nor a power of two.
pub fn set_futex_buckets(buckets: u32) -> io::Result<()> {
    let none: libc::c_ulong = 0;
    let buckets = libc::c_ulong::from(buckets);
    // SAFETY: the request takes numbers.
    match unsafe { libc::prctl(PR_FUTEX_HASH, PR_FUTEX_HASH_SET_SLOTS, buckets, none, none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Keeps all memory of this process, also future memory, in RAM (mlockall(2)).
///
/// # Errors
/// What mlockall(2) reports: `EPERM`, or `ENOMEM` beyond `RLIMIT_MEMLOCK`.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes a number.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    /// No thread waits on the word, so `wake` and `requeue` find none; with another value, `wait` and `requeue` fail.
    #[test]
    fn a_word_with_another_value_is_an_error_and_no_thread_is_woken() {
        for scope in [FutexScope::Private, FutexScope::Shared] {
            let word = AtomicU32::new(3);
            let error = scope.wait(&word, 4).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
            assert_eq!(scope.wake(&word, 5).unwrap(), 0);
            assert_eq!(scope.requeue(&word, &AtomicU32::new(0), 3, 5).unwrap(), 0);
            assert!(scope.requeue(&word, &AtomicU32::new(0), 4, 5).is_err());
        }
    }

    #[test]
    fn only_the_owner_releases_a_lock() {
        let word = AtomicU32::new(0);
        FutexScope::Private.lock_pi(&word).unwrap();
        assert_ne!(word.load(Ordering::Relaxed), 0);
        let error_of_other = std::thread::scope(|scope| {
            let unlock = || {
                FutexScope::Private
                    .unlock_pi(&word)
                    .unwrap_err()
                    .raw_os_error()
            };
            scope.spawn(unlock).join().unwrap()
        });
        assert_eq!(error_of_other, Some(libc::EPERM));
        FutexScope::Private.unlock_pi(&word).unwrap();
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
}
