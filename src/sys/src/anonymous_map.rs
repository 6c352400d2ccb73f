//! Memory mapped without a file, with pages of a given size.

use std::io;
use std::ptr::NonNull;

/// Size of pages, and when they are allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageOptions {
    /// Base-2 logarithm of the size of huge pages; `None` for ordinary ones.
    pub huge_bits: Option<u32>,
    /// Whether pages are allocated when the memory is mapped (`MAP_POPULATE`) instead of at their first use.
    pub populate: bool,
}

/// Private memory, initially zeros; unmapped when dropped.
#[derive(Debug)]
pub struct AnonymousMap {
    base: NonNull<u8>,
    size: usize,
    /// Bytes that are mapped: `size`, rounded up to whole pages if they are huge, since munmap(2) refuses to split a huge page.
    mapped: usize,
}

// SAFETY: the memory is owned by this value alone and not tied to the thread that mapped it.
unsafe impl Send for AnonymousMap {}
// SAFETY: shared references only read.
unsafe impl Sync for AnonymousMap {}

impl AnonymousMap {
    /// Maps `size` bytes.
    ///
    /// # Errors
    /// What mmap(2) reports: `ENOMEM` without enough memory or huge pages, `EINVAL` if `size` is 0 or the machine has no pages of
    /// the given size. [`io::ErrorKind::InvalidInput`] if the size of a page overflows; [`io::ErrorKind::OutOfMemory`] if `size`
    /// overflows when rounded up to whole pages.
    pub fn new(size: usize, pages: PageOptions) -> io::Result<Self> {
        let mut flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mut mapped = size;
        if let Some(bits) = pages.huge_bits {
            let page = 1_usize
                .checked_shl(bits)
                .ok_or(io::ErrorKind::InvalidInput)?;
            mapped = size
                .checked_next_multiple_of(page)
                .ok_or(io::ErrorKind::OutOfMemory)?;
            let bits = i32::try_from(bits).map_err(|_| io::ErrorKind::InvalidInput)?;
            flags |= libc::MAP_HUGETLB | bits << libc::MAP_HUGE_SHIFT;
        }
        if pages.populate {
            flags |= libc::MAP_POPULATE;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address chosen by the kernel; it overlaps nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), mapped, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, size, mapped })
    }

    /// Returns the memory.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `size` readable bytes until it is dropped, and zeros are valid.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.size) }
    }

    /// Returns the memory to write to.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; the mapping is writable and borrowed once.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }
}

impl Drop for AnonymousMap {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing borrows it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_writable_and_a_size_of_0_is_an_error() {
        for populate in [false, true] {
            let pages = PageOptions {
                huge_bits: None,
                populate,
            };
            let mut map = AnonymousMap::new(10_000, pages).unwrap();
            assert!(map.bytes().iter().all(|byte| *byte == 0) && map.bytes().len() == 10_000);
            map.bytes_mut().fill(7);
            assert!(map.bytes().iter().all(|byte| *byte == 7));
        }
        assert!(AnonymousMap::new(0, PageOptions::default()).is_err());
    }
}
