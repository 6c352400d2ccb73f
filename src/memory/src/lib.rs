//! Requests for memory that may fail, for what a file says of its own size.
//!
//! Most requests cannot return an error: a process without memory ends there, with a message (`rperf_sys::Allocator`).
//! What is requested through this crate fails with [`OutOfMemory`] instead, so that the caller can name the object.

use std::cell::Cell;
use std::io::{self, Read};

thread_local! {
    /// Whether a request of this thread may fail.
    static FALLIBLE: Cell<bool> = const { Cell::new(false) };
}

/// Room for what is read first, in bytes.
const LEAST_READ: usize = 8 << 10;

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {bytes} bytes could not be allocated")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

/// Room for `more` items in `list`, and no more than that.
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

/// Adds `item` to a `list` that grows with a file.
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

#[cold]
fn double<T>(list: &mut Vec<T>) -> Result<(), OutOfMemory> {
    reserve(list, list.capacity().max(4))
}

/// So many zeros.
///
/// # Errors
/// [`OutOfMemory`].
pub fn zeros(size: usize) -> Result<Vec<u8>, OutOfMemory> {
    let mut bytes = Vec::new();
    reserve(&mut bytes, size)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// All that `reader` gives, appended to `to`.
///
/// # Errors
/// Those of the reader, and [`io::ErrorKind::OutOfMemory`] with an [`OutOfMemory`].
pub fn read_to_end(mut reader: impl Read, to: &mut Vec<u8>) -> io::Result<()> {
    loop {
        if to.len() == to.capacity() {
            reserve(to, to.capacity().max(LEAST_READ))?;
        }
        // As long as there is room the standard library asks for none.
        let room = to.capacity() - to.len();
        if reader.by_ref().take(room as u64).read_to_end(to)? < room {
            return Ok(());
        }
    }
}

/// Whether a failed request of this thread is to be returned.
#[must_use]
pub fn is_fallible() -> bool {
    FALLIBLE.try_with(Cell::get).unwrap_or_default()
}

/// Does `work`, in which requests may fail.
fn fallibly<T>(work: impl FnOnce() -> T) -> T {
    let _before = Restored(FALLIBLE.replace(true));
    work()
}

/// Puts the old value back, also on the way of a panic.
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
    fn what_cannot_be_had_is_an_error_and_changes_nothing() {
        let mut list = vec![7_u64];
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
    fn what_can_be_had_is_had() {
        let mut list = Vec::new();
        (0..100_000).for_each(|item| push(&mut list, item).unwrap());
        assert!(list.iter().copied().eq(0..100_000));
        assert_eq!(zeros(70_000).unwrap(), vec![0; 70_000]);
        let text = vec![3; 100_000];
        for start in [0, 1, LEAST_READ] {
            let mut read = vec![1; start];
            read_to_end(text.as_slice(), &mut read).unwrap();
            assert_eq!(read, [vec![1; start], text.clone()].concat());
        }
    }

    #[test]
    fn requests_may_fail_only_meanwhile() {
        assert!(!is_fallible());
        fallibly(|| {
            assert!(is_fallible());
            fallibly(|| ());
            assert!(is_fallible());
        });
        assert!(!is_fallible());
    }
}
