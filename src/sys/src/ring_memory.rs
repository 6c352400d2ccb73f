//! The memory that the kernel and this process share for one ring: a control page and the data.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use crate::Counter;
use crate::host::page_size;

/// Offsets of the two positions on the control page.
const DATA_HEAD: usize = offset_of!(perf_event_mmap_page, data_head);
const DATA_TAIL: usize = offset_of!(perf_event_mmap_page, data_tail);

/// A mapped ring. The place of a position in memory is its remainder by the ring's size.
#[derive(Debug)]
pub(crate) struct RingMemory {
    /// First byte of the control page; the data follow one page later.
    base: NonNull<u8>,
    /// Bytes mapped: control page and data.
    mapped: usize,
    /// Bytes from `base` to the data.
    data_offset: usize,
    /// Bytes of data, a power of two.
    size: usize,
}

// SAFETY: the mapping belongs to this value alone and has no tie to the thread that made it; the
// shared positions are only touched through atomics.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Maps a ring of `pages` data pages for `counter`; `protection` as mmap(2) has it.
    pub(crate) fn map(counter: &Counter, pages: usize, protection: i32) -> io::Result<Self> {
        let page = page_size();
        let size = pages.checked_mul(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = size.checked_add(page).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; it overlaps nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                protection,
                libc::MAP_SHARED,
                counter.as_fd().as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            base,
            mapped,
            data_offset: page,
            size,
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Where the kernel will write next; in a ring that it writes backward, where it wrote last.
    pub(crate) fn head(&self) -> u64 {
        // Acquire: the records at the head, written before it, are seen after it
        // (perf_output_put_handle in kernel/events/ring_buffer.c has the matching barrier).
        self.shared(DATA_HEAD).load(Ordering::Acquire)
    }

    pub(crate) fn tail(&self) -> u64 {
        // Only this process writes it, so its own order suffices.
        self.shared(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Moves the tail of a ring that is mapped for writing.
    pub(crate) fn set_tail(&mut self, tail: u64) {
        // Release: every read of the consumed records happens before the kernel sees the room.
        self.shared(DATA_TAIL).store(tail, Ordering::Release);
    }

    /// `length` bytes from a position on, in two pieces where they run over the end of the memory; nothing where they are
    /// more than the ring has.
    ///
    /// # Safety
    ///
    /// The kernel must not write there as long as they are borrowed.
    pub(crate) unsafe fn at(&self, position: u64, length: usize) -> (&[u8], &[u8]) {
        if length > self.size {
            return (&[], &[]);
        }
        let mask = self.size as u64 - 1;
        let start = usize::try_from(position & mask).unwrap_or_default();
        let first = length.min(self.size - start);
        // SAFETY: both pieces lie inside the mapped data area (start < size, first <= size - start,
        // length <= size), where, as the caller has it, nobody writes.
        unsafe {
            let data = self.base.as_ptr().add(self.data_offset).cast_const();
            (
                std::slice::from_raw_parts(data.add(start), first),
                std::slice::from_raw_parts(data, length - first),
            )
        }
    }

    /// The shared position at `offset` of the control page.
    fn shared(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` lives, the two offsets used lie inside
        // it and are multiples of eight, and both sides access the positions as whole 64-bit words.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast::<u64>()) }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this address and size and is not used afterwards.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}
