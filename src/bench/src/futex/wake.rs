//! Waking threads, by one thread or by several at the same time.
//!
//! `self.scope` says which processes may wait on the futex; `scope` and `inner` are scopes of threads.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rperf_count::Spread;

use super::FutexScope;
use super::waiters::{FutexWords, WAIT_WORD_VALUE, WaitPlace, Waiters};
use crate::BenchError;
use crate::thread_gate::ThreadGate;

/// The benchmark `futex wake`.
#[derive(Debug, Clone, Copy)]
pub struct Wake {
    /// Number of waiting threads.
    pub threads: u32,
    /// Maximum number of threads woken by a call.
    pub at_once: u32,
    /// Which processes may wait.
    pub scope: FutexScope,
}

/// Result of one run of [`Wake`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakeTime {
    /// Number of threads that were woken.
    pub woken: u32,
    /// The time from the first call until all threads were woken.
    pub time: Duration,
}

impl Wake {
    /// Lets the threads wait and wakes them all.
    ///
    /// # Errors
    /// [`BenchError::System`] if a waiting thread cannot be started, or for an error of futex(2).
    pub fn run(&self, words: &FutexWords) -> Result<WakeTime, BenchError> {
        let wait = || self.scope.wait(&words.wait_word, WAIT_WORD_VALUE);
        let place = WaitPlace {
            words,
            scope: self.scope,
            pi: false,
        };
        thread::scope(|scope| {
            let waiters = Waiters::start(scope, self.threads, place, wait)?;
            let start = Instant::now();
            // Repeats the call until all threads are woken.
            let woken = waiters.until_all(|| self.scope.wake(&words.wait_word, self.at_once));
            let time = start.elapsed();
            waiters.finish()?;
            let woken = woken.map_err(BenchError::of("futex wake"))?;
            Ok(WakeTime { woken, time })
        })
    }
}

/// The benchmark `futex wake-parallel`.
#[derive(Debug, Clone, Copy)]
pub struct WakeParallel {
    /// Number of waiting threads.
    pub threads: u32,
    /// Number of waking threads. Each wakes `threads / wakers` threads with one call.
    pub wakers: u32,
    /// Which processes may wait.
    pub scope: FutexScope,
}

impl WakeParallel {
    /// Lets the threads wait and wakes them; returns the mean time of the calls of the waking threads, in milliseconds, and its
    /// standard error.
    ///
    /// # Errors
    /// [`BenchError::System`] if a thread cannot be started, or for an error of futex(2).
    pub fn run(&self, words: &FutexWords) -> Result<Spread, BenchError> {
        let each = self.threads / self.wakers.max(1);
        let wait = || self.scope.wait(&words.wait_word, WAIT_WORD_VALUE);
        let place = WaitPlace {
            words,
            scope: self.scope,
            pi: false,
        };
        thread::scope(|scope| {
            let waiters = Waiters::start(scope, self.threads, place, wait)?;
            let gate = ThreadGate::default();
            let wake = || {
                gate.pass();
                let start = Instant::now();
                let woken = self.scope.wake(&words.wait_word, each);
                woken.map(|_| start.elapsed())
            };
            // The waking threads end before `finish`, which would otherwise wake waiting threads in their place.
            let times = thread::scope(|inner| {
                let spawn = |_| thread::Builder::new().spawn_scoped(inner, wake);
                let wakers: io::Result<Vec<_>> = (0..self.wakers).map(spawn).collect();
                let wakers = wakers
                    // Otherwise the threads that were started would wait at the gate forever.
                    .inspect_err(|_| gate.open())
                    .map_err(BenchError::of("cannot start a thread"))?;
                gate.wait_for(wakers.len());
                gate.open();
                let times = wakers.into_iter().map(|thread| match thread.join() {
                    Ok(time) => time.map_err(BenchError::of("futex wake")),
                    Err(_) => Err(BenchError::Thread),
                });
                times.collect::<Result<Vec<Duration>, BenchError>>()
            });
            waiters.finish()?;
            let mut spread = Spread::default();
            for time in times? {
                spread.add(time.as_secs_f64() * 1e3);
            }
            Ok(spread)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_woken() {
        let bench = Wake {
            threads: 3,
            at_once: 2,
            scope: FutexScope::Private,
        };
        let result = bench.run(&FutexWords::default()).unwrap();
        assert!(
            result.woken == 3 && result.time > Duration::ZERO,
            "{result:?}"
        );
    }

    #[test]
    fn each_waking_thread_has_a_time() {
        let bench = WakeParallel {
            threads: 4,
            wakers: 2,
            scope: FutexScope::Shared,
        };
        let spread = bench.run(&FutexWords::default()).unwrap();
        assert!(spread.number() == 2 && spread.mean() > 0.0, "{spread:?}");
    }
}
