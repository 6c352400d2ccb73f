//! Memory that forked processes share.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Words, initially 0, that this process and those forked from it later share; unmapped when dropped.
#[derive(Debug)]
pub struct SharedMemory {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory consists of atomic words, is owned by this value and not tied to the thread that mapped it.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Maps `bytes`, rounded down to whole words of 8 bytes; nothing is mapped for less than a word.
    ///
    /// # Errors
    /// What mmap(2) reports: `ENOMEM` beyond the limits.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let words = bytes / size_of::<AtomicU64>();
        if words == 0 {
            let base = NonNull::dangling();
            return Ok(Self { base, words });
        }
        // The size that `drop` unmaps.
        let bytes = words * size_of::<AtomicU64>();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel; it overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, words })
    }

    /// Returns the words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is aligned to pages and has this many words until it is dropped; other processes access them
        // atomically, too. Without words the pointer is dangling, which is valid.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.words) }
    }

    /// Asks for transparent huge pages if `enabled`, otherwise for none (madvise(2)).
    ///
    /// # Errors
    /// What madvise(2) reports: `EINVAL` from a kernel without them.
    pub fn use_huge_pages(&self, enabled: bool) -> io::Result<()> {
        let advice = match enabled {
            true => libc::MADV_HUGEPAGE,
            false => libc::MADV_NOHUGEPAGE,
        };
        let bytes = self.words * size_of::<AtomicU64>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the range is this mapping; the advice changes no content.
        match unsafe { libc::madvise(self.base.as_ptr().cast(), bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        if self.words > 0 {
            let bytes = self.words * size_of::<AtomicU64>();
            // SAFETY: the mapping belongs to this value, and nothing borrows it any more.
            unsafe { libc::munmap(self.base.as_ptr().cast(), bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Children;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_child_writes_and_the_parent_reads() {
        let memory = SharedMemory::new(20_000).unwrap();
        assert_eq!(memory.words().len(), 2_500);
        let mut children = Children::default();
        let write = || {
            memory.words()[2_499].store(7, Ordering::Relaxed);
            0
        };
        children.fork(write).unwrap();
        // `None`: no child failed.
        assert_eq!(children.wait().unwrap(), None);
        assert_eq!(memory.words()[2_499].load(Ordering::Relaxed), 7);
        assert!(SharedMemory::new(0).unwrap().words().is_empty());
    }
}
