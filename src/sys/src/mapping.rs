//! Memory shared with the kernel for a counter.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::NonNull;

use crate::Counter;

/// A part of a counter's memory, its ring or its AUX area; unmapped when dropped. Not a mapping of a process in a recording.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping is owned by this value alone and not tied to the thread that created it.
unsafe impl Send for Mapping {}
// SAFETY: its address and size don't change; access to the memory is up to its users.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `size` bytes of `counter` from `offset` on: 0 for its ring, or the start of its AUX
    /// area; `protection` as for mmap(2).
    ///
    /// # Errors
    /// What mmap(2) reports.
    pub(crate) fn of(
        counter: &Counter,
        offset: usize,
        size: usize,
        protection: i32,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new shared mapping at an address chosen by the kernel; it overlaps nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                protection,
                libc::MAP_SHARED,
                counter.as_fd().as_raw_fd(),
                offset,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // The kernel never chooses address 0; the error is only for the type.
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, size })
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns `length` bytes from `position` on in the circular part of the memory, as two pieces. `position` only grows: it is
    /// not reset when the part wraps around. The part begins `offset` bytes after [`base`](Self::base) (in [`Self::of`], `offset`
    /// is the argument of mmap(2) instead), and ends with the memory; its size must be a power of two. The second piece is empty
    /// unless the bytes wrap around the end; both are empty if `length` exceeds the size of the part.
    ///
    /// # Safety
    ///
    /// The memory must not be written while it is borrowed.
    pub(crate) unsafe fn wrapping_slices(
        &self,
        offset: usize,
        position: u64,
        length: usize,
    ) -> (&[u8], &[u8]) {
        let size = self.size.saturating_sub(offset);
        if length > size || size == 0 {
            return (&[], &[]);
        }
        let start = usize::try_from(position & (size as u64 - 1)).unwrap_or_default();
        let first = length.min(size - start);
        // SAFETY: both pieces lie inside the mapping (offset + size is its end, start < size, first
        // <= size - start, length <= size), and the caller guarantees that the memory isn't written.
        unsafe {
            let part = self.base.as_ptr().add(offset).cast_const();
            (
                std::slice::from_raw_parts(part.add(start), first),
                std::slice::from_raw_parts(part, length - first),
            )
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was created by `of` with this address and size and is not used
        // afterwards.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}
