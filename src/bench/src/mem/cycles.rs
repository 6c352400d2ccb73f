//! The cost of memory operations: time, or cycles of the processor.

use std::time::{Duration, Instant};

use rperf_sys::{Counter, ObservedTask};
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat};

use crate::BenchError;

/// `PERF_COUNT_HW_CPU_CYCLES`.
const CYCLES: u64 = 0;

/// How a cost is measured.
#[derive(Debug)]
pub enum Clock {
    /// The monotonic clock.
    Time,
    /// A counter of processor cycles in user space.
    Cycles(Counter),
}

/// A measured cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// Time.
    Time(Duration),
    /// Processor cycles in user space.
    Cycles(u64),
}

impl Clock {
    /// Opens a counter of cycles in user space for this thread.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if the counter cannot be opened.
    pub fn cycles() -> Result<Self, BenchError> {
        let attr = Attr {
            kind: EventType::HARDWARE,
            config: CYCLES,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        let this_thread = ObservedTask { pid: 0, cpu: -1 };
        let leader = None;
        let counter = Counter::open(&attr, this_thread, leader);
        counter.map(Self::Cycles).map_err(|error| {
            BenchError::Unavailable(format!("Failed to open cycles counter: {error}"))
        })
    }

    /// Calls `run` and returns its cost.
    ///
    /// # Errors
    /// [`BenchError::System`] if the counter cannot be read.
    pub fn measure(&self, run: impl FnOnce()) -> Result<Cost, BenchError> {
        match self {
            Self::Time => {
                let start = Instant::now();
                run();
                Ok(Cost::Time(start.elapsed()))
            }
            Self::Cycles(counter) => {
                let value = || {
                    let read = counter.read(ReadFormat::default());
                    read.map(|read| read.value)
                        .map_err(BenchError::of("failed to read the cycles counter"))
                };
                let before = value()?;
                run();
                Ok(Cost::Cycles(value()? - before))
            }
        }
    }
}

impl Cost {
    /// Returns the rate at which `bytes` were processed, in bytes per second; `None` for cycles.
    #[must_use]
    pub fn rate(self, bytes: f64) -> Option<f64> {
        match self {
            Self::Time(time) => Some(bytes / time.as_secs_f64().max(1e-9)),
            Self::Cycles(_) => None,
        }
    }
}
