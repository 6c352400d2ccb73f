//! Futexes: the kernel's part of locks.

mod hash;
mod lock_pi;
mod requeue;
mod waiters;
mod wake;

pub use hash::{Hash, HashThread};
pub use lock_pi::{LockPi, LockThread};
pub use requeue::{Requeue, Requeued};
pub use rperf_sys::FutexScope;
pub use waiters::FutexWords;
pub use wake::{Wake, WakeParallel, WakeTime};

use crate::BenchError;

/// Sets the number of buckets of the process's table of futexes.
///
/// # Errors
/// [`BenchError::Unavailable`] if the kernel refuses, as those before 6.16 do.
pub fn set_buckets(buckets: u32) -> Result<(), BenchError> {
    rperf_sys::set_futex_buckets(buckets).map_err(|error| {
        BenchError::Unavailable(format!("{buckets} futex buckets (Linux 6.16): {error}"))
    })
}

/// Keeps all memory of this process in RAM.
///
/// # Errors
/// [`BenchError::System`] if mlockall(2) fails, such as beyond the limit of locked memory.
pub fn lock_memory() -> Result<(), BenchError> {
    rperf_sys::lock_memory().map_err(BenchError::of("mlockall"))
}
