//! The memory shared with the kernel for one ring: a control page and the data.

use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rperf_ring::Memory;

use crate::Counter;
use crate::host::page_size;
use crate::mapping::Mapping;

/// Offsets of the two positions in the control page.
const DATA_HEAD: usize = offset_of!(perf_event_mmap_page, data_head);
const DATA_TAIL: usize = offset_of!(perf_event_mmap_page, data_tail);
/// Offset of the sequence lock.
const LOCK: usize = offset_of!(perf_event_mmap_page, lock);

/// `cap_user_time_zero` and `cap_user_time_short` of the capabilities.
const USER_TIME_ZERO: u64 = 1 << 4;
const USER_TIME_SHORT: u64 = 1 << 5;

/// Parameters to convert hardware time to timestamps (`struct perf_event_mmap_page` has the
/// formula).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeConversion {
    /// Number of bits to shift by.
    pub shift: u16,
    /// Multiplier.
    pub mult: u32,
    /// Offset to add, in ns.
    pub zero: u64,
    /// For clocks with less than 64 bits: `time_cycles`, an earlier hardware time in 64 bits, from which the upper bits of later
    /// ones are derived, and `time_mask`, the mask of the clock's bits.
    pub short: Option<(u64, u64)>,
}

impl TimeConversion {
    fn of(page: &perf_event_mmap_page) -> Option<Self> {
        // SAFETY: both members of the union are the same 64 bits.
        let capabilities = unsafe { page.__bindgen_anon_1.capabilities };
        let is_short = capabilities & USER_TIME_SHORT != 0;
        (capabilities & USER_TIME_ZERO != 0).then_some(Self {
            shift: page.time_shift,
            mult: page.time_mult,
            zero: page.time_zero,
            short: is_short.then_some((page.time_cycles, page.time_mask)),
        })
    }
}

/// A mapped ring. A position modulo the ring's size is its offset in the data.
#[derive(Debug)]
pub(crate) struct RingMemory {
    /// The control page, followed by the data.
    mapping: Mapping,
    /// Offset of the data from the control page.
    data_offset: usize,
    /// Size of the data in bytes, a power of two.
    size: usize,
}

impl RingMemory {
    /// Maps a ring of `pages` data pages for `counter`; `protection` as for mmap(2).
    pub(crate) fn map(counter: &Counter, pages: usize, protection: i32) -> io::Result<Self> {
        let page = page_size();
        let size = pages.checked_mul(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = size.checked_add(page).ok_or(io::ErrorKind::OutOfMemory)?;
        // 0 selects the ring, not the AUX area.
        let offset = 0;
        Ok(Self {
            mapping: Mapping::of(counter, offset, mapped, protection)?,
            data_offset: page,
            size,
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Position at which the kernel continues to write; for a backward ring, the position of the
    /// newest record.
    pub(crate) fn head(&self) -> u64 {
        // Acquire: the kernel writes records before it publishes the head; reads after this load see these records
        // (perf_output_put_handle in kernel/events/ring_buffer.c has the matching barrier).
        self.control_field(DATA_HEAD).load(Ordering::Acquire)
    }

    pub(crate) fn tail(&self) -> u64 {
        // Only this process writes the tail, so no barrier is needed.
        self.control_field(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Moves the tail of a ring that is mapped writable.
    pub(crate) fn set_tail(&self, tail: u64) {
        // Release: all reads of consumed records happen before the kernel sees the free space.
        self.control_field(DATA_TAIL).store(tail, Ordering::Release);
    }

    /// Returns `length` bytes from a position on, in two pieces if they wrap around the end; empty
    /// if `length` exceeds the ring's size.
    ///
    /// # Safety
    ///
    /// The kernel must not write to these bytes while the pieces are borrowed.
    pub(crate) unsafe fn at(&self, position: u64, length: usize) -> (&[u8], &[u8]) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            self.mapping
                .wrapping_slices(self.data_offset, position, length)
        }
    }

    /// Size of the mapping in bytes: control page and data.
    pub(crate) fn mapped_size(&self) -> usize {
        self.mapping.size()
    }

    /// Parameters to convert hardware time to timestamps; `None` without `cap_user_time_zero`.
    pub(crate) fn time_conversion(&self) -> Option<TimeConversion> {
        loop {
            // A sequence lock: its number is odd while the kernel writes, and a different even number after that.
            // Acquire: the fields read below are not older than the number.
            let before = self.lock().load(Ordering::Acquire);
            // SAFETY: the control page is mapped as long as `self` lives, and begins with this
            // structure; any bits are valid for its fields. The copy is discarded if the kernel
            // wrote meanwhile.
            let page = unsafe {
                self.mapping
                    .base()
                    .cast::<perf_event_mmap_page>()
                    .read_volatile()
            };
            // Acquire: the fields are read before the lock is read again.
            fence(Ordering::Acquire);
            if before & 1 == 0 && self.lock().load(Ordering::Relaxed) == before {
                return TimeConversion::of(&page);
            }
            std::hint::spin_loop();
        }
    }

    fn lock(&self) -> &AtomicU32 {
        // SAFETY: as for `control_field`; the lock is a word of 32 bits at a multiple of four.
        unsafe { AtomicU32::from_ptr(self.mapping.base().as_ptr().add(LOCK).cast::<u32>()) }
    }

    /// The 64-bit field at `offset` of the control page, which the kernel shares.
    pub(crate) fn control_field(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the control page is mapped as long as `self` lives, the offsets used lie inside
        // it and are multiples of eight, and both sides access the positions as whole 64-bit words.
        unsafe { AtomicU64::from_ptr(self.mapping.base().as_ptr().add(offset).cast::<u64>()) }
    }
}

/// The number of bytes between two positions; `None` unless `tail <= from <= to <= head`, where the kernel does not write.
pub(crate) fn byte_distance(memory: &impl Memory, from: u64, to: u64) -> Option<usize> {
    let are_unreleased = memory.tail() <= from && from <= to && to <= memory.head();
    let length = usize::try_from(to.wrapping_sub(from)).ok();
    length.filter(|_| are_unreleased)
}
