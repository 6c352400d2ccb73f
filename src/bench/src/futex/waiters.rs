//! Threads that wait on a futex until another thread wakes or moves them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::FutexScope;
use crate::BenchError;

/// The pause in which all threads fall asleep after the last one is ready.
const FALL_ASLEEP: Duration = Duration::from_millis(100);

/// More threads than can wait; the kernel takes the number as an `int`.
const ALL: u32 = u32::MAX >> 1;

/// The value of [`FutexWords::wait_word`], which each call on that word expects.
pub(super) const WAIT_WORD_VALUE: u32 = 0;

/// The words of a benchmark. They are the same in all runs, so that their addresses can be shown before the first run.
#[derive(Debug, Default)]
pub struct FutexWords {
    /// The word that threads wait on; always [`WAIT_WORD_VALUE`].
    pub(super) wait_word: AtomicU32,
    /// The word or lock that waiting threads are moved to.
    pub(super) target: AtomicU32,
}

impl FutexWords {
    /// Returns the addresses of the word that threads wait on, and of the one that they are moved to.
    #[must_use]
    pub fn addresses(&self) -> [usize; 2] {
        [&self.wait_word, &self.target].map(|word| word.as_ptr() as usize)
    }
}

/// Where threads wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitPlace<'w> {
    pub(super) words: &'w FutexWords,
    /// Whether only threads of this process or those of all processes may wait. Not the scope of [`Waiters::start`], in which the
    /// threads are started.
    pub(super) scope: FutexScope,
    /// Whether they wait to be moved to a lock with priority inheritance (PI), which is then `target`.
    pub(super) pi: bool,
}

impl WaitPlace<'_> {
    /// Ends the wait of the threads that wait now. Errors are ignored: the next call may succeed.
    fn release(&self) {
        let FutexWords { wait_word, target } = self.words;
        if self.pi {
            // The kernel refuses to wake these threads. Once moved, each gets the lock when the one before releases it.
            let _ = self
                .scope
                .requeue_pi(wait_word, target, WAIT_WORD_VALUE, ALL);
        } else {
            let _ = self.scope.wake(wait_word, ALL);
            let _ = self.scope.wake(target, ALL);
        }
    }
}

/// Waiting threads.
pub(super) struct Waiters<'scope> {
    threads: Vec<ScopedJoinHandle<'scope, io::Result<()>>>,
    place: WaitPlace<'scope>,
    /// Whether the wait of a thread has failed.
    has_failed: Arc<AtomicBool>,
}

impl<'scope> Waiters<'scope> {
    /// Starts `count` threads that call `wait`, again if a signal interrupts it, and gives them time to fall asleep.
    pub(super) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        count: u32,
        place: WaitPlace<'scope>,
        wait: impl Fn() -> io::Result<()> + Copy + Send + 'scope,
    ) -> Result<Self, BenchError> {
        let (sender, ready) = std::sync::mpsc::channel();
        let mut waiters = Self {
            threads: Vec::new(),
            place,
            has_failed: Arc::default(),
        };
        for _ in 0..count {
            let sender = sender.clone();
            let has_failed = Arc::clone(&waiters.has_failed);
            let thread = thread::Builder::new().spawn_scoped(scope, move || {
                // Cannot fail: the receiver lives until all threads have sent.
                let _ = sender.send(());
                loop {
                    match wait() {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        result => {
                            has_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                            return result;
                        }
                    }
                }
            });
            match thread {
                Ok(thread) => waiters.threads.push(thread),
                Err(error) => {
                    waiters.finish()?;
                    return Err(BenchError::of("cannot start a thread")(error));
                }
            }
        }
        drop(sender);
        // Waits for the message of each thread.
        for () in ready.iter().take(waiters.threads.len()) {}
        thread::sleep(FALL_ASLEEP);
        Ok(waiters)
    }

    /// Repeats an operation, which returns the number of threads that it woke or moved, until it has reached all threads, or the
    /// wait of a thread has failed; returns the sum. `EAGAIN` counts as none.
    pub(super) fn until_all(
        &self,
        mut operation: impl FnMut() -> io::Result<u32>,
    ) -> io::Result<u32> {
        let mut reached = 0;
        while (reached as usize) < self.threads.len() && !self.has_failed.load(Ordering::Relaxed) {
            match operation() {
                Ok(0) => thread::yield_now(),
                Ok(more) => reached += more,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => {
                    thread::yield_now();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(reached)
    }

    /// Ends the wait of the threads that still wait, and waits until all have ended.
    ///
    /// # Errors
    /// That of the first thread, in the order of their start, whose wait has failed or that panicked.
    pub(super) fn finish(self) -> Result<(), BenchError> {
        while self.threads.iter().any(|thread| !thread.is_finished()) {
            self.place.release();
            thread::yield_now();
        }
        self.threads.into_iter().try_for_each(|thread| {
            let ended = thread.join().map_err(|_| BenchError::Thread)?;
            ended.map_err(BenchError::of("a waiting thread failed"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Runs `work` in a thread, and fails if it does not end in 20 seconds, many times its pause of [`FALL_ASLEEP`].
    fn ends(work: impl FnOnce() + Send + 'static) {
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || {
            work();
            sender.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(20)).unwrap();
    }

    #[test]
    fn finish_wakes_waiting_threads() {
        let words = FutexWords::default();
        let place = WaitPlace {
            words: &words,
            scope: FutexScope::Private,
            pi: false,
        };
        thread::scope(|scope| {
            let wait = || place.scope.wait(&words.wait_word, WAIT_WORD_VALUE);
            let waiters = Waiters::start(scope, 3, place, wait).unwrap();
            assert_eq!(waiters.threads.len(), 3);
            waiters.finish().unwrap();
        });
        assert_eq!(words.wait_word.load(Ordering::Relaxed), WAIT_WORD_VALUE);
    }

    #[test]
    fn finish_ends_waits_for_a_lock_with_priority_inheritance() {
        ends(|| {
            let words = FutexWords::default();
            let place = WaitPlace {
                words: &words,
                scope: FutexScope::Private,
                pi: true,
            };
            let FutexWords { wait_word, target } = &words;
            thread::scope(|scope| {
                let wait = || {
                    place
                        .scope
                        .wait_requeue_pi(wait_word, WAIT_WORD_VALUE, target)?;
                    place.scope.unlock_pi(target)
                };
                let waiters = Waiters::start(scope, 3, place, wait).unwrap();
                waiters.finish().unwrap();
            });
        });
    }

    #[test]
    fn until_all_ends_after_a_failed_wait() {
        ends(|| {
            let words = FutexWords::default();
            let place = WaitPlace {
                words: &words,
                scope: FutexScope::Private,
                pi: false,
            };
            thread::scope(|scope| {
                let wait = || Err(io::ErrorKind::Unsupported.into());
                let waiters = Waiters::start(scope, 2, place, wait).unwrap();
                let reached = waiters.until_all(|| place.scope.wake(&words.wait_word, 1));
                assert_eq!(reached.unwrap(), 0);
                let error = waiters.finish().unwrap_err();
                assert_eq!(error.to_string(), "a waiting thread failed");
            });
        });
    }
}
