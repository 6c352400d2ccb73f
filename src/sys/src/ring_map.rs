//! The memory that the kernel and this process share for one ring of records.

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

/// A ring that the kernel writes forward: it never overwrites what lies between tail and head.
///
/// Positions (`head`, `tail`) count bytes since the ring was made and never wrap; the place of a
/// position in memory is its remainder by the ring's size.
#[derive(Debug)]
pub struct RingMap {
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
unsafe impl Send for RingMap {}

impl RingMap {
    /// Maps a ring of `pages` data pages (a power of two) for `counter`.
    ///
    /// # Errors
    /// What mmap(2) reports: `EPERM` when the locked memory exceeds `perf_event_mlock_kb` and
    /// `RLIMIT_MEMLOCK`, `EINVAL` when `pages` is no power of two, `ENOMEM`.
    pub fn new(counter: &Counter, pages: usize) -> io::Result<Self> {
        let page = page_size();
        let size = pages.checked_mul(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = size.checked_add(page).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new shared mapping at an address of the kernel's choice; it overlaps nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
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

    /// Bytes of data the ring holds, a power of two.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where the kernel will write next.
    #[must_use]
    pub fn head(&self) -> u64 {
        // Acquire: the records below the head, written before it, are seen after it
        // (perf_output_put_handle in kernel/events/ring_buffer.c has the matching barrier).
        self.shared(DATA_HEAD).load(Ordering::Acquire)
    }

    /// Up to where the records have been consumed.
    #[must_use]
    pub fn tail(&self) -> u64 {
        // Only this process writes it, so its own order suffices.
        self.shared(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Gives the bytes below `tail` back to the kernel. Positions beyond the head are taken as the head.
    pub fn release(&mut self, tail: u64) {
        let tail = tail.min(self.head());
        // Release: every read of the consumed records happens before the kernel sees the room.
        self.shared(DATA_TAIL).store(tail, Ordering::Release);
    }

    /// The bytes between two positions, in two pieces where they run over the end of the memory;
    /// empty unless `tail <= from <= to <= head`.
    #[must_use]
    pub fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        let held = self.tail() <= from && from <= to && to <= self.head();
        let length = usize::try_from(to.wrapping_sub(from)).unwrap_or(usize::MAX);
        if !held || length > self.size {
            return (&[], &[]);
        }
        let mask = self.size as u64 - 1;
        let start = usize::try_from(from & mask).unwrap_or_default();
        let first = length.min(self.size - start);
        // SAFETY: both pieces lie inside the mapped data area (start < size, first <= size - start,
        // length <= size), and between tail and head, where the kernel does not write until
        // the tail moves; `release` takes `&mut self`, so it can't move while they are borrowed.
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

impl Drop for RingMap {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this address and size and is not used afterwards.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observed;
    use rperf_wire::{Attr, AttrFlags, Endian, EventType, RawRecord, RecordKind};

    #[test]
    fn the_kernel_announces_mappings_of_this_process() {
        let flags = AttrFlags::MMAP
            | AttrFlags::MMAP_DATA
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV;
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: 9,
            flags,
            ..Attr::default()
        };
        let Ok(counter) = Counter::open(&attr, Observed { pid: 0, cpu: -1 }, None) else {
            return;
        };
        let mut ring = RingMap::new(&counter, 2).unwrap();
        drop(crate::map_file(std::path::Path::new("/proc/self/exe")).unwrap());
        let head = ring.head();
        let (first, second) = ring.bytes(0, head);
        assert_eq!(first.len() + second.len(), usize::try_from(head).unwrap());
        let (record, _) = RawRecord::split(first, Endian::NATIVE).unwrap();
        assert_eq!(record.kind, RecordKind::MMAP);
        assert_eq!(
            ring.bytes(0, head + 8),
            (&[][..], &[][..]),
            "beyond the head"
        );
        ring.release(u64::MAX);
        assert_eq!(ring.tail(), head);
        assert_eq!(ring.bytes(0, head), (&[][..], &[][..]), "given back");
    }

    #[test]
    fn a_ring_must_be_a_power_of_two() {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: 9,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        let Ok(counter) = Counter::open(&attr, Observed { pid: 0, cpu: -1 }, None) else {
            return;
        };
        assert!(RingMap::new(&counter, 3).is_err());
    }
}
