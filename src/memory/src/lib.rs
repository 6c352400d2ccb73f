//! Fallible memory allocation, for sizes that are read from files.
//!
//! Most allocations cannot return an error: if they fail, the process ends with a message
//! (`rperf_sys::Allocator`). Allocations through this crate fail with [`OutOfMemory`] instead, so
//! that the caller can name the object.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::cell::Cell;
use std::io::{self, Read};

thread_local! {
    /// Whether a failed allocation of this thread returns an error, instead of ending the process.
    static FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// The smallest growth of a buffer for reading, in bytes.
const MIN_GROWTH: usize = 8 << 10;

/// A failed allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {bytes} bytes could not be allocated")]
pub struct OutOfMemory {
    /// Number of requested bytes; for a list that could not grow, the size that the whole list would have.
    pub bytes: usize,
}

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Reserves space for `more` additional items in `list`.
///
/// # Errors
/// [`OutOfMemory`], with the list unchanged.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let reserved = fallibly(|| list.try_reserve_exact(more));
    reserved.map_err(|_| OutOfMemory {
        bytes: list
            .len()
            .saturating_add(more)
            .saturating_mul(size_of::<T>()),
    })
}

/// Appends `item` to a `list` whose length depends on a file.
///
/// # Errors
/// [`OutOfMemory`], with the list unchanged.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<(), OutOfMemory> {
    if list.len() == list.capacity() {
        double(list)?;
    }
    list.push(item);
    Ok(())
}

/// Doubles the capacity of a full `list`; an empty or short one gets space for 4 more items.
#[cold]
fn double<T>(list: &mut Vec<T>) -> Result<(), OutOfMemory> {
    reserve(list, list.capacity().max(4))
}

/// Returns `size` zero bytes.
///
/// # Errors
/// [`OutOfMemory`].
pub fn zeros(size: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, size)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Reads to the end of `reader` and appends to `to`.
///
/// # Errors
/// Errors of the reader; [`io::ErrorKind::OutOfMemory`] with an [`OutOfMemory`].
pub fn read_to_end(mut reader: impl Read, to: &mut Vec<u8>) -> io::Result<()> {
    loop {
        if to.len() == to.capacity() {
            reserve(to, to.capacity().max(MIN_GROWTH))?;
        }
        // This `read_to_end` allocates nothing: the spare capacity has room for all that it may read.
        let room = to.capacity() - to.len();
        if reader.by_ref().take(room as u64).read_to_end(to)? < room {
            return Ok(());
        }
    }
}

/// Whether a failed allocation of this thread returns an error.
#[must_use]
pub fn is_fallible() -> bool {
    FALLIBLE.try_with(Cell::get).unwrap_or_default()
}

/// Calls `work` with fallible allocations.
fn fallibly<T>(work: impl FnOnce() -> T) -> T {
    let _before = Restored(FALLIBLE.replace(true));
    work()
}

/// Restores the old value of [`FALLIBLE`] when dropped, also while unwinding from a panic.
struct Restored(bool);

impl Drop for Restored {
    fn drop(&mut self) {
        FALLIBLE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_allocations_are_errors_and_change_nothing() {
        let mut list = vec![7_u64];
        // With the item in `list`, the largest size that a `Vec` may request.
        let more = isize::MAX as usize / 8 - 1;
        let bytes = (more + 1) * 8;
        assert_eq!(reserve(&mut list, more), Err(OutOfMemory { bytes }));
        assert_eq!(list, [7]);
        assert!(zeros(isize::MAX as usize).is_err());
        let error = io::Error::from(OutOfMemory { bytes: 9 });
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        assert_eq!(
            error.to_string(),
            "out of memory: 9 bytes could not be allocated"
        );
    }

    #[test]
    fn possible_allocations_succeed() {
        let mut list = Vec::new();
        (0..100_000).for_each(|item| push(&mut list, item).unwrap());
        assert!(list.iter().copied().eq(0..100_000));
        assert_eq!(zeros(70_000).unwrap(), vec![0; 70_000]);
        let text = vec![3; 100_000];
        for start in [0, 1, MIN_GROWTH] {
            let mut read = vec![1; start];
            read_to_end(text.as_slice(), &mut read).unwrap();
            assert_eq!(read, [vec![1; start], text.clone()].concat());
        }
    }

    #[test]
    fn allocations_are_fallible_only_inside_the_closure() {
        assert!(!is_fallible());
        fallibly(|| {
            assert!(is_fallible());
            fallibly(|| ());
            assert!(is_fallible());
        });
        assert!(!is_fallible());
    }
}
