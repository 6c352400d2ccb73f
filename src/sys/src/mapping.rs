//! Memory that a counter shares with this process.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::ptr::NonNull;

use crate::Counter;

/// A part of a counter's memory, mapped as long as this lives.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and has no tie to the thread that made it.
unsafe impl Send for Mapping {}
// SAFETY: its address and size do not change; what is done with the memory, its users answer for.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `size` bytes of `counter` from `offset` on, where its ring (0) or its area begins; `protection` as mmap(2) has it.
    ///
    /// # Errors
    /// What mmap(2) reports.
    pub(crate) fn of(
        counter: &Counter,
        (offset, size): (usize, usize),
        protection: i32,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; it overlaps nothing.
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
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, size })
    }

    /// Its first byte.
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes mapped.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// `length` bytes from a position on, in the part of the memory from `offset` to its end, a power of two, that is written
    /// round and round: in two pieces where they run over the end, nothing where they are more than the part has.
    ///
    /// # Safety
    ///
    /// Nobody must write there as long as they are borrowed.
    pub(crate) unsafe fn round(
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
        // SAFETY: both pieces lie inside the mapping (offset + size is its end, start < size, first <= size - start,
        // length <= size), where, as the caller has it, nobody writes.
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
        // SAFETY: the mapping was made by `of` with this address and size and is not used afterwards.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size) };
    }
}
