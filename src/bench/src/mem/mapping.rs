//! Memory that is mapped, used and unmapped.

use std::hint::black_box;
use std::io;

use rperf_count::Spread;
use rperf_sys::{AnonymousMap, PageOptions, page_size};

use super::{Clock, Cost};
use crate::BenchError;
use crate::random::{first_state, next_random};

/// A function that maps memory. The functions differ in when the kernel allocates the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MmapFunction {
    /// When the pages are first used.
    Demand,
    /// When the memory is mapped.
    Populate,
}

impl MmapFunction {
    /// Every function.
    pub const ALL: [Self; 2] = [Self::Demand, Self::Populate];

    /// Returns perf's name for the function, and its description.
    #[must_use]
    pub fn name_and_description(self) -> (&'static str, &'static str) {
        match self {
            Self::Demand => ("demand", "Demand loaded mmap()"),
            Self::Populate => ("populate", "Eagerly populated mmap()"),
        }
    }
}

/// The benchmark `mem mmap`.
#[derive(Debug, Clone, Copy)]
pub struct Mmap {
    /// Size of the memory in bytes.
    pub size: usize,
    /// Number of times that each thread maps it.
    pub loops: u64,
    /// Number of threads that run at the same time.
    pub threads: u32,
    /// Seed for a random choice of the used pages; with `None`, each page is used once, in the order of addresses.
    pub seed: Option<u64>,
    /// Base-2 logarithm of the size of huge pages in bytes; `None` for ordinary pages.
    pub huge_bits: Option<u32>,
}

/// The cost of each thread.
#[derive(Debug, Clone, PartialEq)]
pub struct MmapCosts(pub Vec<Cost>);

impl MmapCosts {
    /// Returns the mean speed of the threads in bytes per second, or their mean cost in cycles per byte if cycles were counted,
    /// with its standard error. `bytes` is the number of bytes of each thread ([`Mmap::bytes`]).
    #[must_use]
    pub fn speed(&self, bytes: f64) -> Spread {
        let mut spread = Spread::default();
        for cost in &self.0 {
            spread.add(match cost {
                Cost::Time(_) => cost.rate(bytes).unwrap_or_default(),
                Cost::Cycles(cycles) => *cycles as f64 / bytes,
            });
        }
        spread
    }
}

impl Mmap {
    /// Returns the number of bytes that each thread maps in all loops.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.size as f64 * self.loops as f64
    }

    /// Maps, uses and unmaps the memory in each thread, `loops` times. Each time, there are as many accesses as the memory
    /// has pages. Measures cycles if `count_cycles`, otherwise time.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if there is not enough memory with pages of this size, or the cycles counter cannot be opened.
    /// [`BenchError::System`] if a thread cannot be started or the counter cannot be read.
    pub fn run(&self, function: MmapFunction, count_cycles: bool) -> Result<MmapCosts, BenchError> {
        let measured = std::thread::scope(|scope| {
            let spawn = |number| {
                let work = move || self.run_thread(function, count_cycles, number);
                std::thread::Builder::new().spawn_scoped(scope, work)
            };
            let numbers = 0..u64::from(self.threads);
            let threads: io::Result<Vec<_>> = numbers.map(spawn).collect();
            let threads = threads.map_err(BenchError::of("cannot start a thread"))?;
            let costs = threads.into_iter().map(|thread| match thread.join() {
                Ok(cost) => cost,
                Err(_) => Err(BenchError::Thread),
            });
            costs.collect::<Result<Vec<Cost>, BenchError>>()
        });
        measured.map(MmapCosts)
    }

    /// The work of the thread `number`: maps the memory `loops` times. Returns its cost.
    fn run_thread(
        &self,
        function: MmapFunction,
        count_cycles: bool,
        number: u64,
    ) -> Result<Cost, BenchError> {
        let clock = match count_cycles {
            true => Clock::cycles()?,
            false => Clock::Time,
        };
        let mut failed = None;
        let cost = clock.measure(|| {
            for _ in 0..self.loops {
                if let Err(error) = self.map_once(function, number) {
                    failed = Some(error);
                    break;
                }
            }
        })?;
        match failed {
            None => Ok(cost),
            Some(error) => Err(BenchError::Unavailable(format!(
                "memory of {} bytes: {error}",
                self.size
            ))),
        }
    }

    /// Maps, uses and unmaps the memory once, in the thread `number`.
    fn map_once(&self, function: MmapFunction, number: u64) -> io::Result<()> {
        let pages = PageOptions {
            huge_bits: self.huge_bits,
            populate: function == MmapFunction::Populate,
        };
        let mut map = AnonymousMap::new(self.size, pages)?;
        let page = self.huge_bits.map_or_else(page_size, |bits| 1 << bits);
        let count = self.size.div_ceil(page);
        let mut state = self.seed.map(|seed| first_state(seed.wrapping_add(number)));
        let bytes = map.bytes_mut();
        for index in 0..count {
            let chosen = match &mut state {
                None => index,
                Some(state) => next_random(state) as usize % count,
            };
            if let Some(byte) = bytes.get_mut(chosen * page) {
                *byte = 1;
            }
        }
        black_box(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_maps_the_memory() {
        for (function, seed) in [
            (MmapFunction::Demand, None),
            (MmapFunction::Populate, Some(7)),
        ] {
            let bench = Mmap {
                size: 100_000,
                loops: 2,
                threads: 2,
                seed,
                huge_bits: None,
            };
            let count_cycles = false;
            let costs = bench.run(function, count_cycles).unwrap();
            let spread = costs.speed(bench.bytes());
            assert!(spread.number() == 2 && spread.mean() > 0.0, "{costs:?}");
        }
    }

    #[test]
    fn impossible_memory_is_reported() {
        let bench = Mmap {
            size: 1 << 60,
            loops: 1,
            threads: 1,
            seed: None,
            huge_bits: None,
        };
        let count_cycles = false;
        let error = bench.run(MmapFunction::Demand, count_cycles).unwrap_err();
        assert!(matches!(error, BenchError::Unavailable(_)), "{error:?}");
    }
}
