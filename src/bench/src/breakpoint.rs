//! Hardware breakpoints: threads that inherit them, and switching them on and off.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use rperf_sys::{Counter, ObservedTask};
use rperf_wire::{Attr, AttrFlags, EventType};

use crate::BenchError;
use crate::thread_gate::ThreadGate;

/// `HW_BREAKPOINT_RW` (linux/hw_breakpoint.h).
const READ_WRITE: u32 = 3;
/// Number of bytes watched: `HW_BREAKPOINT_LEN_1`.
const LENGTH: u64 = 1;

/// Opens a breakpoint on a byte, for the calling thread and all threads that it starts afterwards.
fn open(watched: &AtomicBool) -> Result<Counter, BenchError> {
    let attr = Attr {
        kind: EventType::BREAKPOINT,
        bp_type: READ_WRITE,
        // `bp_addr` and `bp_len`, as the kernel names these fields for breakpoints.
        config1: watched.as_ptr() as u64,
        config2: LENGTH,
        sample_period: 1,
        flags: AttrFlags::INHERIT | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    let this_thread = ObservedTask { pid: 0, cpu: -1 };
    let leader = None;
    Counter::open(&attr, this_thread, leader).map_err(unavailable)
}

fn unavailable(error: io::Error) -> BenchError {
    BenchError::Unavailable(format!("perf_event_open: {error}"))
}

/// The benchmark `breakpoint thread`.
#[derive(Debug, Clone, Copy)]
pub struct BreakpointThreads {
    /// Number of breakpoints.
    pub breakpoints: u32,
    /// Number of parallel threads that start and join other threads.
    pub parallelism: u32,
    /// Number of threads that each parallel thread starts and joins, one after the other.
    pub threads: u32,
}

impl BreakpointThreads {
    /// Runs the benchmark; returns the time until all threads have ended.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if a breakpoint cannot be opened, [`BenchError::System`] if a thread cannot be started,
    /// [`BenchError::Thread`] if one panicked.
    pub fn run(&self) -> Result<Duration, BenchError> {
        let watched: Vec<AtomicBool> = (0..self.breakpoints)
            .map(|_| AtomicBool::new(false))
            .collect();
        let opened = watched.iter().map(open);
        // Kept until all threads have ended: a dropped counter is closed.
        let _opened = opened.collect::<Result<Vec<Counter>, BenchError>>()?;
        let start = Instant::now();
        thread::scope(|scope| {
            let start_and_join = || -> io::Result<()> {
                for _ in 0..self.threads {
                    let thread = thread::Builder::new().spawn(|| ())?;
                    thread.join().map_err(|_| io::ErrorKind::Other)?;
                }
                Ok(())
            };
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, start_and_join);
            let threads: io::Result<Vec<_>> = (0..self.parallelism).map(spawn).collect();
            let threads = threads.map_err(BenchError::of("cannot start a thread"))?;
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join().map_err(|_| BenchError::Thread)?;
                ended.map_err(BenchError::of("cannot start a thread"))
            })
        })?;
        Ok(start.elapsed())
    }
}

/// The benchmark `breakpoint enable`.
#[derive(Debug, Clone, Copy)]
pub struct BreakpointSwitch {
    /// Number of threads that sleep during the measurement.
    pub passive: u32,
    /// Number of threads that run during the measurement.
    pub active: u32,
}

impl BreakpointSwitch {
    /// The number of times that the breakpoint is switched off and on.
    pub const LOOPS: u64 = 10;

    /// Runs the benchmark; returns the total time of all switches.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if the breakpoint cannot be opened, [`BenchError::System`] if it cannot be switched off
    /// or on, or a thread cannot be started.
    pub fn run(&self) -> Result<Duration, BenchError> {
        let watched = AtomicBool::new(false);
        let counter = open(&watched)?;
        let signals = SwitchSignals::default();
        thread::scope(|scope| {
            let started = self.start(scope, &signals);
            let started = started.map_err(BenchError::of("cannot start a thread"));
            let measured = started.and_then(|()| {
                signals.sleep.wait_for(self.passive as usize);
                signals.run.wait_for(self.active as usize);
                signals.run.open();
                Self::measure(&counter)
            });
            signals.end();
            measured
        })
    }

    /// Starts the threads, which end after [`SwitchSignals::end`].
    fn start<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        signals: &'scope SwitchSignals,
    ) -> io::Result<()> {
        for _ in 0..self.passive {
            thread::Builder::new().spawn_scoped(scope, move || signals.sleep.pass())?;
        }
        for _ in 0..self.active {
            thread::Builder::new().spawn_scoped(scope, move || {
                signals.run.pass();
                while !signals.done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })?;
        }
        Ok(())
    }

    /// Returns the time of all switches.
    fn measure(counter: &Counter) -> Result<Duration, BenchError> {
        let start = Instant::now();
        let switched = (0..Self::LOOPS).try_for_each(|_| {
            counter.disable()?;
            counter.enable()
        });
        let time = start.elapsed();
        switched.map_err(BenchError::of("breakpoint"))?;
        Ok(time)
    }
}

/// Signals to the threads of [`BreakpointSwitch`].
#[derive(Debug, Default)]
struct SwitchSignals {
    /// Opened at the end; passive threads sleep until then.
    sleep: ThreadGate,
    /// Opened when all threads are ready; active threads run from then on.
    run: ThreadGate,
    /// Set at the end, for active threads.
    done: AtomicBool,
}

impl SwitchSignals {
    /// Lets all threads end.
    fn end(&self) {
        self.done.store(true, Ordering::Relaxed);
        self.sleep.open();
        self.run.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_benchmarks_run_where_breakpoints_are_available() {
        let threads = BreakpointThreads {
            breakpoints: 1,
            parallelism: 2,
            threads: 3,
        };
        let switch = BreakpointSwitch {
            passive: 2,
            active: 1,
        };
        for result in [threads.run(), switch.run()] {
            match result {
                Ok(time) => assert!(time > Duration::ZERO),
                // Not permitted, or no breakpoints here.
                Err(error) => assert!(matches!(error, BenchError::Unavailable(_)), "{error:?}"),
            }
        }
    }

    #[test]
    fn too_many_breakpoints_are_reported() {
        let bench = BreakpointThreads {
            // More than any processor has (x86: 4).
            breakpoints: 100,
            parallelism: 1,
            threads: 1,
        };
        assert!(matches!(bench.run(), Err(BenchError::Unavailable(_))));
    }
}
