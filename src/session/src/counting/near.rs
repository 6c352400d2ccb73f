//! Being near counters: a request from another CPU interrupts that of the counter, and waits until it has answered.

use rperf_sys::{Bound, CpuList};

/// Counters of one CPU from which on it is worth to go there.
const WORTH: usize = 16;

/// Takes the calling thread from CPU to CPU, and home when dropped.
#[derive(Debug)]
pub(super) struct Near {
    is_worth: bool,
    bound: Option<Bound>,
}

impl Near {
    /// For so many counters on each CPU.
    pub(super) fn new(counters: usize) -> Self {
        Self {
            is_worth: counters >= WORTH,
            bound: None,
        }
    }

    /// Goes to a CPU, if it may: everything can be done from elsewhere too.
    pub(super) fn go(&mut self, cpu: Option<u32>) {
        let Some(cpu) = cpu.filter(|_| self.is_worth) else {
            return;
        };
        let there: CpuList = [cpu].into_iter().collect();
        match &mut self.bound {
            Some(bound) => drop(bound.move_to(&there)),
            None => self.bound = Bound::to(&there).ok(),
        }
    }
}
