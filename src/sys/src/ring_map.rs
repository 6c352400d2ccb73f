//! Rings that the kernel writes forward without overwriting unread records.

use std::io;
use std::sync::Arc;

use rperf_ring::Memory;

use crate::Counter;
use crate::ring_memory::{RingMemory, TimeConversion, byte_distance};

/// A ring that the kernel writes forward: bytes between tail and head are never overwritten.
///
/// Positions (`head`, `tail`) count bytes since the ring's creation and never wrap; a position
/// modulo the ring's size is its offset in the data area.
#[derive(Debug)]
pub struct RingMap {
    /// Shared with the ring's AUX area, whose positions are in the same control page.
    pub(crate) memory: Arc<RingMemory>,
}

impl RingMap {
    /// Maps a ring of `pages` data pages (a power of two) for `counter`.
    ///
    /// # Errors
    /// What mmap(2) reports: `EPERM` if the locked memory exceeds what `perf_event_mlock_kb` and
    /// `RLIMIT_MEMLOCK` allow together, `EINVAL` if `pages` is not a power of two, `ENOMEM`;
    /// [`io::ErrorKind::OutOfMemory`] if the size in bytes overflows.
    pub fn new(counter: &Counter, pages: usize) -> io::Result<Self> {
        let memory = RingMemory::map(counter, pages, libc::PROT_READ | libc::PROT_WRITE)?;
        let memory = Arc::new(memory);
        Ok(Self { memory })
    }

    /// Parameters to convert hardware time to the ring's timestamps; `None` if the kernel doesn't
    /// provide them.
    #[must_use]
    pub fn time_conversion(&self) -> Option<TimeConversion> {
        self.memory.time_conversion()
    }

    /// Size of the data area in bytes, a power of two.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.size()
    }
}

impl Memory for RingMap {
    /// Position at which the kernel continues to write.
    fn head(&self) -> u64 {
        self.memory.head()
    }

    /// Position up to which records were consumed.
    fn tail(&self) -> u64 {
        self.memory.tail()
    }

    /// The bytes between two positions, in two pieces if they wrap around; none unless `tail <= from <= to <= head`.
    fn bytes(&self, from: u64, to: u64) -> (&[u8], &[u8]) {
        let Some(length) = byte_distance(self, from, to) else {
            return (&[], &[]);
        };
        // SAFETY: the bytes lie between tail and head, where the kernel does not write until the tail moves; `release` takes
        // `&mut self`, so the tail can't move while they are borrowed.
        unsafe { self.memory.at(from, length) }
    }

    /// Releases the bytes below `tail` to the kernel. Positions beyond the head are clamped to the
    /// head.
    fn release(&mut self, tail: u64) {
        let tail = tail.min(self.head());
        self.memory.set_tail(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{AttrFlags, Endian, RawRecord, RecordKind};

    #[test]
    fn records_can_be_read_until_they_are_released() {
        let Some(counter) = Counter::open_dummy(AttrFlags::MMAP | AttrFlags::MMAP_DATA) else {
            return;
        };
        let mut ring = RingMap::new(&counter, 2).unwrap();
        // The mapping is recorded.
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
        assert_eq!(ring.bytes(0, head), (&[][..], &[][..]), "released");
    }

    #[test]
    fn a_ring_must_be_a_power_of_two() {
        let Some(counter) = Counter::open_dummy(AttrFlags::default()) else {
            return;
        };
        assert!(RingMap::new(&counter, 3).is_err());
    }
}
