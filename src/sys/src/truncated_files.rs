//! Mapped files that are truncated while being read.
//!
//! Reading beyond the new end of a mapped file raises SIGBUS (mmap(2)), which ends the process. The
//! handler of this module replaces the missing page by a page of zeros; the process can report the
//! truncation when it finishes.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// `si_code` of an address beyond the end of a mapped file (asm-generic/siginfo.h). The kernel also reports it for a page that it
/// can't read from the disk, which is treated alike.
const BUS_ADRERR: i32 = 2;

/// Page size in bytes, for the handler; 0 until the handler is installed.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
/// Whether a page was replaced.
static WAS_TRUNCATED: AtomicBool = AtomicBool::new(false);

/// Installs the SIGBUS handler, so that reads beyond the end of a truncated mapped file return
/// zeros.
///
/// # Errors
/// What sigaction(2) reports.
pub fn handle_truncated_files() -> io::Result<()> {
    PAGE_SIZE.store(crate::page_size(), Ordering::Relaxed);
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are a valid sigaction: no flags, an empty mask, the default handler.
    let action = unsafe { action.assume_init_mut() };
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = replace_page;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature required by SA_SIGINFO and calls only async-signal-safe functions.
    let result = unsafe { libc::sigaction(libc::SIGBUS, action, ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether a mapped file was found truncated since the process started.
#[must_use]
pub fn found_truncated_file() -> bool {
    WAS_TRUNCATED.load(Ordering::Acquire)
}

/// Maps a page of zeros in place of the missing one. Any other fault, and a page that can't be
/// replaced, ends the process as without a handler. A SIGBUS from kill(2) only restores the default action; the next one ends
/// the process.
extern "C" fn replace_page(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a filled siginfo_t. The address of a SIGBUS from kill(2) has no meaning and is
    // not used: its `si_code` is not BUS_ADRERR.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr()) };
    let size = PAGE_SIZE.load(Ordering::Relaxed);
    // 0, the size before the handler is installed, is no power of two.
    if code == BUS_ADRERR && size.is_power_of_two() {
        let page = ptr::without_provenance_mut(address.addr() & !(size - 1));
        // SAFETY: the faulting page belongs to a mapping, and lies beyond the end of its file or can't be read, so no data of it
        // is in memory; the new page has the same size and address, and is readable. mmap(2) is a plain system call.
        let new_page = unsafe {
            libc::mmap(
                page,
                size,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if new_page == page {
            WAS_TRUNCATED.store(true, Ordering::Release);
            return;
        }
    }
    // SAFETY: signal(2) is async-signal-safe. A faulting instruction is executed again and ends the process.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn truncated_pages_read_as_zeros() {
        let size = crate::page_size();
        let path = std::env::temp_dir().join(format!("rperf-cut-{}", std::process::id()));
        fs::write(&path, vec![7; 3 * size]).unwrap();
        let file = File::options().write(true).read(true).open(&path).unwrap();
        let map = crate::map_open_file(&file).unwrap();
        assert_eq!((map[0], map[2 * size]), (7, 7));
        handle_truncated_files().unwrap();
        file.set_len(size as u64).unwrap();
        assert_eq!((map[0], map[2 * size], map[3 * size - 1]), (7, 0, 0));
        assert!(found_truncated_file());
        fs::remove_file(&path).unwrap();
    }
}
