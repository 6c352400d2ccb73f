//! Benchmarks of futex(2).

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

/// Sets the number of buckets of this process's hash table of private futexes. With 0, this process uses the
/// table that all processes share.
///
/// # Errors
/// [`BenchError::Unavailable`] if the kernel is older than Linux 6.16 or rejects the number, which must be 0 or a power of two
/// from 2 on.
pub fn set_buckets(buckets: u32) -> Result<(), BenchError> {
    rperf_sys::set_futex_buckets(buckets).map_err(|error| {
        BenchError::Unavailable(format!(
            "cannot set {buckets} futex buckets, which must be a power of two (Linux 6.16): {error}"
        ))
    })
}

/// Keeps all memory of this process in RAM, also memory that it maps later.
///
/// # Errors
/// [`BenchError::System`] if mlockall(2) fails, for example because of `RLIMIT_MEMLOCK`.
pub fn lock_memory() -> Result<(), BenchError> {
    rperf_sys::lock_memory().map_err(BenchError::of("mlockall"))
}
