//! Threads that add, modify and remove descriptors.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rperf_sys::{Epoll, EpollMode, EventFd};

use super::{Nested, UNUSED_DATA, addresses, create_descriptors};
use crate::BenchError;
use crate::random::next_random;
use crate::timed::TimedThreads;

/// The benchmark `epoll ctl`.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// Number of threads.
    pub threads: u32,
    /// Number of descriptors of each thread.
    pub descriptors: u32,
    /// The duration of the run.
    pub duration: Duration,
    /// Whether each thread is bound to a CPU.
    pub bound: bool,
    /// Number of epoll sets nested around the one with the descriptors.
    pub nested: u32,
    /// Whether operations and descriptors are chosen at random.
    pub random: bool,
}

/// Result of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ControlThread {
    /// Addresses in memory of its first and last descriptor, which perf prints as `fdmap`; 0 without descriptors.
    pub addresses: [usize; 2],
    /// Numbers of successful operations that add, modify and remove descriptors.
    pub operations: [u64; 3],
}

impl Control {
    /// Runs the benchmark: all threads use one epoll set.
    ///
    /// # Errors
    /// A descriptor or a thread cannot be created, or an operation fails unexpectedly.
    pub fn run(&self) -> Result<Vec<ControlThread>, BenchError> {
        let descriptors = create_descriptors(self.threads, self.descriptors)?;
        let set = Nested::new(self.nested).map_err(BenchError::of("epoll"))?;
        let threads = TimedThreads {
            threads: descriptors.len(),
            duration: self.duration,
            bound: self.bound,
        };
        // The time that the threads ran is not reported.
        let (counts, _) = threads.run(|number, stop| {
            let own = descriptors.get(number).map_or(&[][..], Vec::as_slice);
            match self.random {
                true => {
                    let seed = number as u64 + 1;
                    at_random(set.inner()?, own, stop, seed)
                }
                false => in_order(set.inner()?, own, stop),
            }
        })?;
        let thread = |(own, operations): (&Vec<EventFd>, [u64; 3])| ControlThread {
            addresses: addresses(own),
            operations,
        };
        Ok(descriptors.iter().zip(counts).map(thread).collect())
    }
}

/// Adds all descriptors, then modifies all, then removes all, until stopped. Returns the numbers of these operations.
fn in_order(set: &Epoll, own: &[EventFd], stop: &AtomicBool) -> io::Result<[u64; 3]> {
    let (mut count_of_each, mode) = (0, EpollMode::default());
    while !stop.load(Ordering::Relaxed) {
        own.iter()
            .try_for_each(|descriptor| set.add(descriptor, mode, UNUSED_DATA))?;
        own.iter()
            .try_for_each(|descriptor| set.modify(descriptor, mode, UNUSED_DATA))?;
        own.iter()
            .try_for_each(|descriptor| set.remove(descriptor))?;
        count_of_each += own.len() as u64;
    }
    Ok([count_of_each; 3])
}

/// Performs random operations on random descriptors until stopped; returns the numbers of successful ones. Adding a member of
/// the set, and modifying or removing a descriptor that is not a member, fail and are not counted. `seed` must not be 0:
/// all numbers would be 0.
fn at_random(set: &Epoll, own: &[EventFd], stop: &AtomicBool, seed: u64) -> io::Result<[u64; 3]> {
    let (mut counts, mut state) = ([0; 3], seed);
    let mode = EpollMode::default();
    while !stop.load(Ordering::Relaxed) {
        let descriptor = own.get(next_random(&mut state) as usize % own.len().max(1));
        let descriptor = descriptor.ok_or(io::ErrorKind::NotFound)?;
        let operation = next_random(&mut state) as usize % counts.len();
        let result = match operation {
            0 => set.add(descriptor, mode, UNUSED_DATA),
            1 => set.modify(descriptor, mode, UNUSED_DATA),
            _ => set.remove(descriptor),
        };
        match result {
            Ok(()) => {
                if let Some(count) = counts.get_mut(operation) {
                    *count += 1;
                }
            }
            Err(error) => match error.kind() {
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => {}
                _ => return Err(error),
            },
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_changes_its_descriptors() {
        for (random, nested) in [(false, 0), (true, 2)] {
            let bench = Control {
                threads: 2,
                descriptors: 4,
                duration: Duration::from_millis(300),
                bound: true,
                nested,
                random,
            };
            let threads = bench.run().unwrap();
            assert_eq!(threads.len(), 2);
            let [add, modify, remove] = threads[0].operations;
            // Only the first thread is checked. At the end, at most its 4 descriptors are in the set.
            assert!(add > 0 && remove > 0 && add - remove <= 4, "{threads:?}");
            assert!(random || (add == modify && add == remove), "{threads:?}");
        }
    }
}
