//! CPU affinity while accessing counters: an ioctl from another CPU needs an inter-processor
//! interrupt and waits for it.

use rperf_sys::{AffinityGuard, CpuList};

/// Minimum number of counters per CPU for which the thread is moved: moving costs more than the interrupts for a few counters.
const MIN_COUNTERS: usize = 16;

/// Moves the calling thread between CPUs; restores the affinity when dropped.
#[derive(Debug)]
pub(super) struct CounterAffinity {
    is_worthwhile: bool,
    bound: Option<AffinityGuard>,
}

impl CounterAffinity {
    /// Starts without moving. `counters` is the number of counters, or groups of counters, that are accessed on each CPU, not
    /// their sum over all CPUs; if they are few, the thread is never moved.
    pub(super) fn new(counters: usize) -> Self {
        Self {
            is_worthwhile: counters >= MIN_COUNTERS,
            bound: None,
        }
    }

    /// Moves the calling thread to a CPU if permitted; otherwise the CPU's counters are accessed from the current one. `None`,
    /// for counters of tasks on any CPU, does not move the thread.
    pub(super) fn move_to(&mut self, cpu: Option<u32>) {
        let Some(cpu) = cpu.filter(|_| self.is_worthwhile) else {
            return;
        };
        let there: CpuList = [cpu].into_iter().collect();
        match &mut self.bound {
            Some(bound) => drop(bound.move_to(&there)),
            None => self.bound = AffinityGuard::to(&there).ok(),
        }
    }
}
