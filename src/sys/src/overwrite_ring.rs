//! Rings that the kernel writes backward, overwriting the oldest records.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use crate::Counter;
use crate::ring_memory::RingMemory;

/// A ring of the latest records, newest first.
#[derive(Debug)]
pub struct OverwriteRing {
    memory: RingMemory,
    /// The counter whose ring it is.
    owner: OwnedFd,
    /// Position of the newest record already read; positions decrease from 0.
    seen: u64,
}

impl OverwriteRing {
    /// Maps a ring of `pages` data pages (a power of two) for `counter`, whose attr has `write_backward`.
    ///
    /// # Errors
    /// Those of [`RingMap::new`](crate::RingMap::new).
    pub fn new(counter: &Counter, pages: usize) -> io::Result<Self> {
        // Mapped read-only: the kernel overwrites rings whose reader can't move the tail.
        Ok(Self {
            memory: RingMemory::map(counter, pages, libc::PROT_READ)?,
            owner: counter.as_fd().try_clone_to_owned()?,
            seen: 0,
        })
    }

    /// Size of the data area in bytes, a power of two.
    #[must_use]
    pub fn size(&self) -> usize {
        self.memory.size()
    }

    /// Copies the records since the last call, newest first; the oldest may be incomplete, because it is partly
    /// overwritten. The ring is paused during the call: records that the kernel would write meanwhile are lost.
    ///
    /// # Errors
    /// What ioctl(2) reports for pausing and resuming the ring.
    pub fn take(&mut self) -> io::Result<Vec<u8>> {
        self.set_paused(true)?;
        let head = self.memory.head();
        let unread = usize::try_from(self.seen.wrapping_sub(head)).unwrap_or(usize::MAX);
        // SAFETY: the kernel doesn't write into a paused ring.
        let (first, second) = unsafe { self.memory.at(head, unread.min(self.size())) };
        let taken = [first, second].concat();
        self.seen = head;
        self.set_paused(false)?;
        Ok(taken)
    }

    fn set_paused(&self, paused: bool) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the request takes a number.
        let result = unsafe {
            perf_event_open_sys::ioctls::PAUSE_OUTPUT(self.owner.as_raw_fd(), u32::from(paused))
        };
        match result {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rperf_wire::{AttrFlags, Endian, RawRecord, RecordKind};

    use super::*;

    /// The file names of the mappings, newest first.
    fn names(mut bytes: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        while let Some((record, size)) = RawRecord::split(bytes, Endian::NATIVE) {
            assert_eq!(record.kind, RecordKind::MMAP);
            // The name follows pid, tid, start, length and offset.
            let name = record.body[32..].split(|byte| *byte == 0).next().unwrap();
            names.push(String::from_utf8_lossy(name).into_owned());
            bytes = &bytes[size..];
        }
        names
    }

    #[test]
    fn the_last_records_are_returned_once() {
        let flags = AttrFlags::MMAP | AttrFlags::MMAP_DATA | AttrFlags::WRITE_BACKWARD;
        let Some(counter) = Counter::open_dummy(flags) else {
            return;
        };
        let mut ring = OverwriteRing::new(&counter, 1).unwrap();
        let map = |path: &str| drop(crate::map_file(std::path::Path::new(path)).unwrap());
        map("/proc/self/exe");
        map("/etc/passwd");
        let recorded = names(&ring.take().unwrap());
        assert_eq!(recorded[0], "/etc/passwd");
        assert!(recorded.len() >= 2);
        assert_eq!(ring.take().unwrap(), []);
        // More records, of at least 50 bytes, than fit in a page of 4 KiB.
        for _ in 0..200 {
            map("/etc/passwd");
        }
        let last = ring.take().unwrap();
        assert_eq!(last.len(), ring.size());
        let recorded = names(&last);
        // 20: far fewer than fit, and enough to show that more than the last few are returned.
        assert!(recorded.len() > 20 && recorded.iter().all(|name| name == "/etc/passwd"));
    }
}
