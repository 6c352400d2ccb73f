//! Locks with priority inheritance (PI).

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::FutexScope;
use crate::BenchError;
use crate::timed::{TimedThreads, rate};

/// The shortest time that a lock is held.
const HELD: Duration = Duration::from_micros(1);

/// The benchmark `futex lock-pi`.
#[derive(Debug, Clone, Copy)]
pub struct LockPi {
    /// Number of threads.
    pub threads: u32,
    /// The duration of the run.
    pub duration: Duration,
    /// Which processes may use the locks.
    pub scope: FutexScope,
    /// Whether each thread has a lock of its own.
    pub own_locks: bool,
}

/// Result of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LockThread {
    /// Address of its lock.
    pub address: usize,
    /// Pairs of lock and unlock per second.
    pub rate: f64,
}

impl LockPi {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// What sched_getaffinity(2), sched_setaffinity(2) and futex(2) report.
    pub fn run(&self) -> Result<Vec<LockThread>, BenchError> {
        let locks: Vec<AtomicU32> = (0..self.threads).map(|_| AtomicU32::new(0)).collect();
        // The lock of the thread `number`: its own, or the first lock, which all threads share.
        let lock_of = |number| locks.get(if self.own_locks { number } else { 0 });
        let threads = TimedThreads {
            threads: locks.len(),
            duration: self.duration,
            // Each to a CPU.
            bound: true,
        };
        let (counts, time) = threads.run(|number, stop| {
            let lock = lock_of(number).ok_or(io::ErrorKind::NotFound)?;
            let mut pairs = 0;
            while !stop.load(Ordering::Relaxed) {
                match self.scope.lock_pi(lock) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    locked => locked?,
                }
                thread::sleep(HELD);
                self.scope.unlock_pi(lock)?;
                pairs += 1;
            }
            Ok(pairs)
        })?;
        let thread = |(number, count)| LockThread {
            address: lock_of(number).map_or(0, |lock| lock.as_ptr() as usize),
            rate: rate(count, time),
        };
        Ok(counts.into_iter().enumerate().map(thread).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_lock_or_have_their_own() {
        for own_locks in [false, true] {
            let bench = LockPi {
                threads: 2,
                duration: Duration::from_millis(200),
                scope: FutexScope::Private,
                own_locks,
            };
            let threads = bench.run().unwrap();
            assert_eq!(threads[0].address != threads[1].address, own_locks);
            assert!(
                threads.iter().any(|thread| thread.rate > 0.0),
                "{threads:?}"
            );
        }
    }
}
