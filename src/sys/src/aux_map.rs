//! The AUX area of a ring: where hardware writes traces of its own form, which no record could hold.

use std::io;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rperf_ring::Memory;

use crate::host::page_size;
use crate::mapping::Mapping;
use crate::ring_memory::{RingMemory, held};
use crate::{Counter, RingMap};

/// Offsets on the control page.
const AUX_HEAD: usize = offset_of!(perf_event_mmap_page, aux_head);
const AUX_TAIL: usize = offset_of!(perf_event_mmap_page, aux_tail);
const AUX_OFFSET: usize = offset_of!(perf_event_mmap_page, aux_offset);
const AUX_SIZE: usize = offset_of!(perf_event_mmap_page, aux_size);

/// A mapped AUX area. In one that is drained positions count bytes since it was made and never wrap; the place of a position
/// in memory is its remainder by the area's size. One that is written over has its head as a place in memory, and no tail.
#[derive(Debug)]
pub struct AuxMap {
    /// The ring with the control page, which stays mapped as long as the area.
    control: Arc<RingMemory>,
    /// The area, whose size is a power of two.
    area: Mapping,
}

impl AuxMap {
    /// Maps an area of `pages` pages (a power of two) beside `ring`, into which `counter`, a trace, writes its records. An area
    /// that is `written_over` keeps the end of the trace and is read while the counter stands still.
    ///
    /// # Errors
    /// What mmap(2) reports: `EOPNOTSUPP` where the counter's unit writes no traces, `EPERM` when the locked memory exceeds
    /// `perf_event_mlock_kb` and `RLIMIT_MEMLOCK`, `EINVAL` when `pages` is no power of two, `ENOMEM`.
    pub fn new(
        counter: &Counter,
        ring: &RingMap,
        pages: usize,
        written_over: bool,
    ) -> io::Result<Self> {
        let size = pages.checked_mul(page_size());
        let size = size.ok_or(io::ErrorKind::OutOfMemory)?;
        let control = Arc::clone(&ring.memory);
        let offset = control.mapped();
        control
            .shared(AUX_OFFSET)
            .store(offset as u64, Ordering::Relaxed);
        control
            .shared(AUX_SIZE)
            .store(size as u64, Ordering::Relaxed);
        let protection = match written_over {
            true => libc::PROT_READ,
            false => libc::PROT_READ | libc::PROT_WRITE,
        };
        Ok(Self {
            area: Mapping::of(counter, (offset, size), protection)?,
            control,
        })
    }

    /// Bytes that fit, a power of two.
    #[must_use]
    pub fn size(&self) -> usize {
        self.area.size()
    }

    /// A copy of the whole area and the place of its head in it, which is the area's size where it is full to the end. The
    /// counters that write into it must stand still, or what is written meanwhile is torn.
    #[must_use]
    pub fn copy(&self) -> (Vec<u8>, usize) {
        let size = self.area.size();
        let mut copy = Vec::with_capacity(size);
        // SAFETY: the area is mapped for its whole size, the copy has room for as much, and they don't overlap; hardware may
        // write meanwhile, so nothing is borrowed from the area.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.area.base().as_ptr().cast_const(),
                copy.as_mut_ptr(),
                size,
            );
            copy.set_len(size);
        }
        let head = usize::try_from(self.head()).unwrap_or(usize::MAX);
        let place = match head <= size {
            true => head,
            false => head & (size - 1),
        };
        (copy, place)
    }
}

impl Memory for AuxMap {
    /// Where the hardware will write next.
    fn head(&self) -> u64 {
        // Acquire: the trace before the head, written before it, is seen after it.
        self.control.shared(AUX_HEAD).load(Ordering::Acquire)
    }

    /// Up to where the trace has been consumed.
    fn tail(&self) -> u64 {
        // Only this process writes it, so its own order suffices.
        self.control.shared(AUX_TAIL).load(Ordering::Relaxed)
    }

    /// The bytes between two positions of an area that is drained.
    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        let Some(length) = held(self, from, to) else {
            return (&[], &[]);
        };
        // SAFETY: the bytes lie between tail and head, where nothing is written until the tail moves; `release` takes
        // `&mut self`.
        unsafe { self.area.round(0, from, length) }
    }

    /// Gives the bytes below `tail` back to the hardware. Positions beyond the head are taken as the head.
    fn release(&mut self, tail: u64) {
        let tail = tail.min(self.head());
        // Release: every read of what was consumed happens before the kernel sees the room.
        self.control.shared(AUX_TAIL).store(tail, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observed;
    use rperf_wire::{Attr, AttrFlags, EventType};

    #[test]
    fn what_writes_no_trace_has_no_area() {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: 9,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        let Ok(counter) = Counter::open(&attr, Observed { pid: 0, cpu: -1 }, None) else {
            return;
        };
        let ring = RingMap::new(&counter, 1).unwrap();
        for written_over in [false, true] {
            let refused = AuxMap::new(&counter, &ring, 1, written_over).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
        }
    }
}
