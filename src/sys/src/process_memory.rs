//! Memory of other processes (process_vm_readv(2)).

use std::io;

/// Reads memory of a process at `address` into `buffer`. Returns the number of bytes read, which is less than the size of
/// `buffer` if a later page cannot be read.
///
/// # Errors
/// What process_vm_readv(2) reports: `ESRCH` without such a process, `EPERM` if it may not be traced, `EFAULT` if nothing is
/// readable at `address`, `EINVAL` for more than 1024 pages (`IOV_MAX`).
pub fn read_process_memory(pid: u32, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    // One segment a page: a call ends before the first segment that cannot be read as a whole.
    let page = crate::page_size() as u64;
    let mut remote = Vec::new();
    let (mut at, end) = (address, address.saturating_add(buffer.len() as u64));
    while at < end {
        let next = (at / page + 1).saturating_mul(page).min(end);
        remote.push(libc::iovec {
            iov_base: at as *mut libc::c_void,
            iov_len: usize::try_from(next - at).unwrap_or_default(),
        });
        at = next;
    }
    let local = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let count = remote.len() as libc::c_ulong;
    // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`; the remote addresses are only read, by the kernel.
    let read =
        unsafe { libc::process_vm_readv(pid, &raw const local, 1, remote.as_ptr(), count, 0) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::read_process_memory;

    #[test]
    fn own_memory_is_read_but_no_unmapped_address_or_unknown_process() {
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        let mut copy = vec![0; bytes.len()];
        let pid = std::process::id();
        let read = read_process_memory(pid, bytes.as_ptr() as u64, &mut copy).unwrap();
        assert_eq!((read, copy), (bytes.len(), bytes));
        let error = read_process_memory(pid, 8, &mut [0; 4]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
        assert!(read_process_memory(u32::MAX, 8, &mut [0; 4]).is_err());
    }
}
