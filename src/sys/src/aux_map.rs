//! The AUX area of a ring, into which hardware writes traces in its own format.

use std::io;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rperf_ring::Memory;

use crate::host::page_size;
use crate::mapping::Mapping;
use crate::ring_memory::{RingMemory, byte_distance};
use crate::{Counter, RingMap};

// Offsets of the fields in the control page.
const AUX_HEAD: usize = offset_of!(perf_event_mmap_page, aux_head);
const AUX_TAIL: usize = offset_of!(perf_event_mmap_page, aux_tail);
const AUX_OFFSET: usize = offset_of!(perf_event_mmap_page, aux_offset);
const AUX_SIZE: usize = offset_of!(perf_event_mmap_page, aux_size);

/// A mapped AUX area. Without overwrite, positions count bytes since its creation and never wrap;
/// a position modulo the size is its offset in memory. In overwrite mode there is no tail, and the
/// head of some PMUs is an offset in memory.
#[derive(Debug)]
pub struct AuxMap {
    /// The ring with the control page, which stays mapped as long as the area.
    control: Arc<RingMemory>,
    /// The area, whose size is a power of two.
    area: Mapping,
}

impl AuxMap {
    /// Maps an area of `pages` pages (a power of two) for `counter`, the event of a hardware trace,
    /// whose records go into `ring`. In `overwrite` mode the area keeps the end of the trace and can be
    /// read while the counter is disabled.
    ///
    /// # Errors
    /// What mmap(2) reports: `EOPNOTSUPP` if the counter's PMU has no AUX area, `EPERM` if the
    /// locked memory exceeds what `perf_event_mlock_kb` and `RLIMIT_MEMLOCK` allow together, `EINVAL` if `pages` is not
    /// a power of two, `ENOMEM`; [`io::ErrorKind::OutOfMemory`] if the size in bytes overflows.
    pub fn new(
        counter: &Counter,
        ring: &RingMap,
        pages: usize,
        overwrite: bool,
    ) -> io::Result<Self> {
        let size = pages.checked_mul(page_size());
        let size = size.ok_or(io::ErrorKind::OutOfMemory)?;
        let control = Arc::clone(&ring.memory);
        let offset = control.mapped_size();
        control
            .control_field(AUX_OFFSET)
            .store(offset as u64, Ordering::Relaxed);
        control
            .control_field(AUX_SIZE)
            .store(size as u64, Ordering::Relaxed);
        // The kernel overwrites an area that is mapped without PROT_WRITE.
        let protection = match overwrite {
            true => libc::PROT_READ,
            false => libc::PROT_READ | libc::PROT_WRITE,
        };
        Ok(Self {
            area: Mapping::of(counter, offset, size, protection)?,
            control,
        })
    }

    /// Size of the area in bytes, a power of two.
    #[must_use]
    pub fn size(&self) -> usize {
        self.area.size()
    }

    /// Returns a copy of the whole area, and the offset of the head in it, at most the size. Counters that
    /// write into the area must be disabled, or the copy is inconsistent.
    #[must_use]
    pub fn copy(&self) -> (Vec<u8>, usize) {
        let size = self.area.size();
        let mut copy = Vec::with_capacity(size);
        // SAFETY: the area is mapped for its whole size, the copy has the same capacity, and they
        // don't overlap; hardware may write concurrently, so no reference into the area is created.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.area.base().as_ptr().cast_const(),
                copy.as_mut_ptr(),
                size,
            );
            copy.set_len(size);
        }
        let head = usize::try_from(self.head()).unwrap_or(usize::MAX);
        // A head beyond the size is not an offset in memory, but counts bytes.
        let offset = match head <= size {
            true => head,
            false => head & (size - 1),
        };
        (copy, offset)
    }
}

impl Memory for AuxMap {
    /// Position at which the hardware continues to write.
    fn head(&self) -> u64 {
        // Acquire: the trace is written before the head that covers it; reads after this load see the trace up to the head.
        self.control.control_field(AUX_HEAD).load(Ordering::Acquire)
    }

    /// Position up to which the trace was consumed.
    fn tail(&self) -> u64 {
        // Only this process writes the tail, so no barrier is needed.
        self.control.control_field(AUX_TAIL).load(Ordering::Relaxed)
    }

    /// The bytes between two positions of an area without overwrite; none unless `tail <= from <= to <= head`.
    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        /// Where the circular part of the mapping begins: the whole area is circular.
        const CIRCULAR_OFFSET: usize = 0;
        let Some(length) = byte_distance(self, from, to) else {
            return (&[], &[]);
        };
        // SAFETY: the bytes lie between tail and head, where nothing is written until the tail moves. Only `release` moves
        // it; it takes `&mut self`, so not while the bytes are borrowed.
        unsafe { self.area.wrapping_slices(CIRCULAR_OFFSET, from, length) }
    }

    /// Releases the bytes below `tail` to the hardware. Positions beyond the head are clamped to
    /// the head.
    fn release(&mut self, tail: u64) {
        let tail = tail.min(self.head());
        // Release: all reads of consumed bytes happen before the kernel sees the free space.
        self.control
            .control_field(AUX_TAIL)
            .store(tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::AttrFlags;

    #[test]
    fn events_without_a_trace_have_no_aux_area() {
        let Some(counter) = Counter::open_dummy(AttrFlags::default()) else {
            return;
        };
        let ring = RingMap::new(&counter, 1).unwrap();
        for overwrite in [false, true] {
            let error = AuxMap::new(&counter, &ring, 1, overwrite).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        }
    }
}
