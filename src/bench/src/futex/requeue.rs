//! Moving waiting threads to another futex.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use super::FutexScope;
use super::waiters::{FutexWords, WAIT_WORD_VALUE, WaitPlace, Waiters};
use crate::BenchError;

/// The benchmark `futex requeue`.
#[derive(Debug, Clone, Copy)]
pub struct Requeue {
    /// Number of waiting threads.
    pub threads: u32,
    /// Maximum number of threads moved by a call.
    pub at_once: u32,
    /// Which processes may wait.
    pub scope: FutexScope,
    /// Whether threads are moved to a lock with priority inheritance.
    pub pi: bool,
}

/// Result of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Requeued {
    /// Number of threads that were moved.
    pub moved: u32,
    /// Number of threads that acquired the lock instead: at most 1 if [`Requeue::pi`] is set, otherwise 0.
    pub woken: u32,
    /// The time from the first call until all threads were moved or woken.
    pub time: Duration,
}

impl Requeue {
    /// Lets the threads wait, moves them all, and wakes them.
    ///
    /// # Errors
    /// [`BenchError::System`] if a thread cannot be started, or for an error of futex(2).
    pub fn run(&self, words: &FutexWords) -> Result<Requeued, BenchError> {
        let wait = || match self.pi {
            false => self.scope.wait(&words.wait_word, WAIT_WORD_VALUE),
            true => {
                self.wait_pi(words)?;
                self.scope.unlock_pi(&words.target)
            }
        };
        let place = WaitPlace {
            words,
            scope: self.scope,
            pi: self.pi,
        };
        thread::scope(|thread_scope| {
            let waiters = Waiters::start(thread_scope, self.threads, place, wait)?;
            let start = Instant::now();
            // Repeats the call until all threads are moved or woken, and returns their number.
            let reached = waiters.until_all(|| {
                let (from, to) = (&words.wait_word, &words.target);
                match self.pi {
                    false => self.scope.requeue(from, to, WAIT_WORD_VALUE, self.at_once),
                    true => self
                        .scope
                        .requeue_pi(from, to, WAIT_WORD_VALUE, self.at_once),
                }
            });
            let time = start.elapsed();
            waiters.finish()?;
            let reached = reached.map_err(BenchError::of("futex requeue"))?;
            // With priority inheritance, the first thread acquires the free lock instead of being moved to it.
            let woken = u32::from(self.pi).min(reached);
            Ok(Requeued {
                moved: reached - woken,
                woken,
                time,
            })
        })
    }

    /// Waits until this thread has acquired the lock, either directly or after it was moved to the lock.
    fn wait_pi(&self, words: &FutexWords) -> io::Result<()> {
        loop {
            let (from, to) = (&words.wait_word, &words.target);
            match self.scope.wait_requeue_pi(from, WAIT_WORD_VALUE, to) {
                // The thread was woken without being moved.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_moved_or_acquire_the_lock() {
        for (pi, at_once, expected) in [(false, 2, (3, 0)), (true, 1, (2, 1))] {
            let bench = Requeue {
                threads: 3,
                at_once,
                scope: FutexScope::Private,
                pi,
            };
            let result = bench.run(&FutexWords::default()).unwrap();
            assert_eq!((result.moved, result.woken), expected);
        }
    }
}
