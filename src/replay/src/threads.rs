//! Work that several threads share.

use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

/// Runs `work` on this thread and on up to `threads - 1` others, and returns the results, this thread's first.
/// Each call of `work` must take its tasks from one shared queue: if a thread cannot be started, the others process its share.
///
/// # Panics
/// With the payload of a thread that panics.
// Not inlined: tests/bench/amdahl.py distinguishes shared work from the work of one thread by this name in profiles.
#[inline(never)]
pub fn on_threads<T: Send>(threads: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(start).collect();
        let mut results = vec![work()];
        for other in others {
            results.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

/// Locks a mutex whose value is valid even if a thread panicked while it held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
