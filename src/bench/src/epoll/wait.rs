//! Threads that wait for descriptors which another thread makes readable.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rperf_sys::{EpollMode, EventFd};

use super::{Nested, addresses, create_descriptors};
use crate::BenchError;
use crate::random::next_random;
use crate::timed::{TimedThreads, rate};

/// The longest wait for an event; after it, a thread checks whether it must stop.
const STOP_CHECK_MILLIS: i32 = 20;
/// The pause of the writing thread after each round, during which waiting threads can use its CPU. As in perf.
const WRITER_PAUSE: Duration = Duration::from_nanos(500);

/// The benchmark `epoll wait`.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// Number of waiting threads.
    pub threads: u32,
    /// Number of descriptors of each thread.
    pub descriptors: u32,
    /// The duration of the run.
    pub duration: Duration,
    /// Whether each thread is bound to a CPU.
    pub bound: bool,
    /// Whether each thread has a separate epoll set.
    pub own_sets: bool,
    /// Number of epoll sets nested around the one with the descriptors.
    pub nested: u32,
    /// Whether each write is to a random descriptor, instead of to one after the other.
    pub random: bool,
    /// Whether threads wait with a timeout of 0 in a loop, instead of blocking.
    pub nonblocking: bool,
    /// The mode in which descriptors report events.
    pub mode: EpollMode,
}

/// Result of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitThread {
    /// Addresses in memory of its first and last descriptor, which perf prints as `fdmap`; 0 without descriptors.
    pub addresses: [usize; 2],
    /// Events per second.
    pub rate: f64,
}

/// Results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitResult {
    /// The results of the waiting threads.
    pub threads: Vec<WaitThread>,
    /// The number of rounds of the writing thread. A round has as many writes as there are descriptors.
    pub rounds: u64,
}

impl Wait {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// A descriptor or a thread cannot be created, or an operation fails.
    pub fn run(&self) -> Result<WaitResult, BenchError> {
        let descriptors = create_descriptors(self.threads, self.descriptors)?;
        let sets = self.sets(&descriptors).map_err(BenchError::of("epoll"))?;
        let threads = TimedThreads {
            threads: descriptors.len(),
            duration: self.duration,
            bound: self.bound,
        };
        let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        let all: Vec<&EventFd> = descriptors.iter().flatten().collect();
        let measured = thread::scope(|scope| {
            let writer = thread::Builder::new()
                .spawn_scoped(scope, || self.write(&all, &done, &rounds))
                .map_err(BenchError::of("cannot start a thread"))?;
            let measured = threads.run(|number, stop| {
                let set = sets.get(if self.own_sets { number } else { 0 });
                self.receive(set.ok_or(io::ErrorKind::NotFound)?, &all, stop)
            });
            done.store(true, Ordering::Relaxed);
            writer.join().map_err(|_| BenchError::Thread)?;
            measured
        });
        let (counts, time) = measured?;
        let thread = |(own, count): (&Vec<EventFd>, u64)| WaitThread {
            addresses: addresses(own),
            rate: rate(count, time),
        };
        Ok(WaitResult {
            threads: descriptors.iter().zip(counts).map(thread).collect(),
            rounds: rounds.load(Ordering::Relaxed),
        })
    }

    /// Creates an epoll set for each thread, or one for all threads, and adds the descriptors. The data of a descriptor is its
    /// index among those of all threads.
    fn sets(&self, descriptors: &[Vec<EventFd>]) -> io::Result<Vec<Nested>> {
        let count = if self.own_sets { descriptors.len() } else { 1 };
        let sets = (0..count).map(|_| Nested::new(self.nested));
        let sets: Vec<Nested> = sets.collect::<io::Result<_>>()?;
        let mut data = 0;
        for (number, own) in descriptors.iter().enumerate() {
            for descriptor in own {
                let set = sets.get(if self.own_sets { number } else { 0 });
                if let Some(set) = set {
                    set.inner()?.add(descriptor, self.mode, data)?;
                }
                data += 1;
            }
        }
        Ok(sets)
    }

    /// Waits for readable descriptors and reads them until stopped; returns the number of successful reads.
    fn receive(&self, set: &Nested, all: &[&EventFd], stop: &AtomicBool) -> io::Result<u64> {
        let timeout = if self.nonblocking {
            0
        } else {
            STOP_CHECK_MILLIS
        };
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            let data = match set.wait(timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                data => data?,
            };
            let Some(data) = data else { continue };
            let index = usize::try_from(data).ok();
            let descriptor = index.and_then(|index| all.get(index));
            let descriptor = descriptor.ok_or(io::ErrorKind::InvalidData)?;
            match descriptor.take() {
                Ok(_) => count += 1,
                // Another thread has read it first.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.mode.oneshot {
                set.inner()?.modify(descriptor, self.mode, data)?;
            }
        }
        Ok(count)
    }

    /// Writes to descriptors in rounds until `done` is set, and counts the rounds. A round has as many writes as there are
    /// descriptors.
    fn write(&self, all: &[&EventFd], done: &AtomicBool, rounds: &AtomicU64) {
        let mut state = 1;
        while !done.load(Ordering::Relaxed) {
            for index in 0..all.len() {
                let chosen = match self.random {
                    true => next_random(&mut state) as usize % all.len(),
                    false => index,
                };
                if let Some(descriptor) = all.get(chosen) {
                    // Fails if the counter is at its limit, but then the descriptor is readable anyway.
                    let _ = descriptor.signal();
                }
            }
            rounds.fetch_add(1, Ordering::Relaxed);
            thread::sleep(WRITER_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_arrive_with_shared_nested_and_separate_sets() {
        let shared_set = Wait {
            threads: 2,
            descriptors: 4,
            duration: Duration::from_millis(40),
            bound: true,
            own_sets: false,
            nested: 0,
            random: false,
            nonblocking: false,
            mode: EpollMode::default(),
        };
        let nested_sets = Wait {
            nested: 2,
            random: true,
            nonblocking: true,
            bound: false,
            mode: EpollMode {
                edge: false,
                oneshot: true,
            },
            ..shared_set
        };
        let separate_sets = Wait {
            own_sets: true,
            ..shared_set
        };
        let has_events = |bench: &Wait| {
            let result = bench.run().unwrap();
            assert_eq!(result.threads.len(), 2);
            result.rounds > 0 && result.threads.iter().any(|thread| thread.rate > 0.0)
        };
        for mut bench in [shared_set, nested_sets, separate_sets] {
            // On a busy machine the writer or all waiting threads may not get to run in so short a time.
            while !has_events(&bench) {
                bench.duration *= 2;
                assert!(bench.duration < Duration::from_secs(20), "{bench:?}");
            }
        }
    }
}
