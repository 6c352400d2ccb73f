//! Threads that repeat an operation for a given time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rperf_sys::{AffinityGuard, allowed_cpus};

use crate::BenchError;
use crate::thread_gate::ThreadGate;

/// Threads that start their work at the same time and end when a flag is set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimedThreads {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    /// Whether each thread is bound to one of the allowed CPUs, taken in turn.
    pub(crate) bound: bool,
}

impl TimedThreads {
    /// Calls `work` in each thread with the thread's number and the flag that is set when it must stop: after the duration, or
    /// earlier if a thread fails. Returns the results, and the time from the start until the flag was set.
    ///
    /// # Errors
    /// [`BenchError::System`] if a thread cannot be started or bound to a CPU, or for the error of `work`;
    /// [`BenchError::Thread`] if `work` panics.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl Fn(usize, &AtomicBool) -> io::Result<T> + Sync,
    ) -> Result<(Vec<T>, Duration), BenchError> {
        let cpus = allowed_cpus().map_err(BenchError::of("sched_getaffinity"))?;
        let cpus = cpus.numbers();
        let (gate, stop) = (ThreadGate::default(), AtomicBool::new(false));
        thread::scope(|scope| {
            let spawn = |number: usize| {
                let (work, gate, stop) = (&work, &gate, &stop);
                let cpu = cpus.get(number % cpus.len().max(1)).copied();
                let cpu = cpu.filter(|_| self.bound);
                thread::Builder::new().spawn_scoped(scope, move || {
                    let affinity =
                        cpu.map(|cpu| AffinityGuard::to(&std::iter::once(cpu).collect()));
                    // Also if binding failed: `wait_for` counts all threads.
                    gate.pass();
                    let result = affinity
                        .transpose()
                        .and_then(|_affinity| work(number, stop));
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    result
                })
            };
            let threads: io::Result<Vec<_>> = (0..self.threads).map(spawn).collect();
            let threads = threads
                .inspect_err(|_| {
                    // The scope ends only when the threads that were started have ended.
                    stop.store(true, Ordering::Relaxed);
                    gate.open();
                })
                .map_err(BenchError::of("cannot start a thread"))?;
            gate.wait_for(threads.len());
            let begin = Instant::now();
            gate.open();
            // Sleeps in steps, to notice soon that a thread has failed.
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
