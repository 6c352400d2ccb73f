//! The kernel's futex hash table: waits that return at once.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::FutexScope;
use crate::BenchError;
use crate::timed::{TimedThreads, rate};

/// A value that no word has: a wait that expects it returns at once.
const OTHER_VALUE: u32 = 1234;
/// `EAGAIN`, the result of each wait.
const AGAIN: io::ErrorKind = io::ErrorKind::WouldBlock;

/// The benchmark `futex hash`.
#[derive(Debug, Clone, Copy)]
pub struct Hash {
    /// Number of threads.
    pub threads: u32,
    /// Number of words (futexes) of each thread.
    pub futexes: u32,
    /// The duration of the run.
    pub duration: Duration,
    /// Which processes may wait.
    pub scope: FutexScope,
}

/// Result of a thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HashThread {
    /// Address of its first word; 0 without words.
    pub first: usize,
    /// Address of its last word; 0 without words.
    pub last: usize,
    /// Operations per second.
    pub rate: f64,
}

impl Hash {
    /// Runs the benchmark.
    ///
    /// # Errors
    /// [`BenchError::System`] if a thread cannot be started or bound to a CPU, or if futex(2) returns an unexpected result.
    pub fn run(&self) -> Result<Vec<HashThread>, BenchError> {
        let of_one_thread = || (0..self.futexes).map(|_| AtomicU32::new(0)).collect();
        let words: Vec<Vec<AtomicU32>> = (0..self.threads).map(|_| of_one_thread()).collect();
        let threads = TimedThreads {
            threads: words.len(),
            duration: self.duration,
            // As in perf, each thread stays on one CPU.
            bound: true,
        };
        let (counts, time) = threads.run(|number, stop| {
            let own = words.get(number).map_or(&[][..], Vec::as_slice);
            let mut operations = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                for word in own {
                    match self.scope.wait(word, OTHER_VALUE) {
                        Err(error) if error.kind() == AGAIN => {}
                        Err(error) => return Err(error),
                        Ok(()) => return Err(io::ErrorKind::InvalidData.into()),
                    }
                }
                operations += own.len() as u64;
            }
            Ok(operations)
        })?;
        let address = |word: Option<&AtomicU32>| word.map_or(0, |word| word.as_ptr() as usize);
        let thread = |(own, count): (&Vec<AtomicU32>, u64)| HashThread {
            first: address(own.first()),
            last: address(own.last()),
            rate: rate(count, time),
        };
        Ok(words.iter().zip(counts).map(thread).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_words_of_its_own() {
        let bench = Hash {
            threads: 2,
            futexes: 10,
            duration: Duration::from_millis(200),
            scope: FutexScope::Shared,
        };
        let threads = bench.run().unwrap();
        assert_eq!(threads.len(), 2);
        for thread in &threads {
            // The tenth word is nine words of four bytes after the first.
            assert_eq!(thread.last - thread.first, 36);
            assert!(thread.rate > 0.0, "{threads:?}");
        }
        assert_ne!(threads[0].first, threads[1].first);
    }
}
