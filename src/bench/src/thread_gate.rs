//! Starts threads at the same time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Holds threads until it is opened. Unlike a barrier, it can be opened if fewer threads arrive than were planned.
#[derive(Debug, Default)]
pub(crate) struct ThreadGate {
    state: Mutex<GateState>,
    arrival: Condvar,
    opening: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    /// Number of threads that have arrived.
    arrived: usize,
    is_open: bool,
}

impl ThreadGate {
    /// Counts this thread as arrived, and waits until the gate is open.
    pub(crate) fn pass(&self) {
        let mut state = self.state();
        state.arrived += 1;
        self.arrival.notify_one();
        drop(self.opening.wait_while(state, |state| !state.is_open));
    }

    /// Waits until `count` threads have arrived. To be called by one thread only, since an arrival wakes only one.
    pub(crate) fn wait_for(&self, count: usize) {
        let state = self.state();
        drop(
            self.arrival
                .wait_while(state, |state| state.arrived < count),
        );
    }

    /// Lets the threads pass that have arrived, and those that still arrive.
    pub(crate) fn open(&self) {
        self.state().is_open = true;
        self.opening.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn threads_pass_once_the_gate_is_open() {
        let (gate, passed) = (ThreadGate::default(), AtomicUsize::new(0));
        let passed_before = thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    gate.pass();
                    passed.fetch_add(1, Ordering::Relaxed);
                });
            }
            gate.wait_for(3);
            let passed_before = passed.load(Ordering::Relaxed);
            gate.open();
            passed_before
        });
        assert_eq!((passed_before, passed.load(Ordering::Relaxed)), (0, 3));
    }
}
