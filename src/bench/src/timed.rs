//! Threads that repeat an operation for a given time.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rperf_sys::{AffinityGuard, allowed_cpus};

use crate::BenchError;

/// Threads that start at the same time and stop when a flag is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedThreads {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    /// Whether each thread is bound to a CPU.
    pub(crate) bound: bool,
}

impl TimedThreads {
    /// Calls `work` in each thread with the thread's number and the flag; returns the results, and the time between start and
    /// stop.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl Fn(usize, &AtomicBool) -> io::Result<T> + Sync,
    ) -> Result<(Vec<T>, Duration), BenchError> {
        let cpus = allowed_cpus().map_err(BenchError::of("sched_getaffinity"))?;
        let cpus = cpus.numbers();
        let (start, stop) = (Barrier::new(self.threads + 1), AtomicBool::new(false));
        thread::scope(|scope| {
            let spawn = |number: usize| {
                let (work, start, stop) = (&work, &start, &stop);
                let cpu = cpus.get(number % cpus.len().max(1)).copied();
                let cpu = cpu.filter(|_| self.bound);
                scope.spawn(move || {
                    let bound = cpu.map(|cpu| AffinityGuard::to(&std::iter::once(cpu).collect()));
                    start.wait();
                    let result = bound.transpose().and_then(|_bound| work(number, stop));
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            };
            let threads: Vec<_> = (0..self.threads).map(spawn).collect();
            start.wait();
            let begin = Instant::now();
            while begin.elapsed() < self.duration && !stop.load(Ordering::Relaxed) {
                let rest = self.duration.saturating_sub(begin.elapsed());
                thread::sleep(rest.min(Duration::from_millis(100)));
            }
            stop.store(true, Ordering::Relaxed);
            let elapsed = begin.elapsed();
            let results = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result.map_err(BenchError::of("a thread of the benchmark failed")),
                Err(_) => Err(BenchError::Thread),
            });
            Ok((results.collect::<Result<Vec<T>, BenchError>>()?, elapsed))
        })
    }
}

/// Returns operations per second.
pub(crate) fn rate(operations: u64, time: Duration) -> f64 {
    operations as f64 / time.as_secs_f64().max(1e-9)
}
