//! Mapped files that are cut short while they are read.
//!
//! A read beyond the new end of a mapped file raises SIGBUS (mmap(2)), which ends a process. With the handler of
//! this module the page that is gone becomes a page of zeros, which every decoder takes for damaged data, and
//! the process can say at its end what happened.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// `si_code` of an address behind the end of a mapped file (asm-generic/siginfo.h).
const BUS_ADRERR: i32 = 2;

/// Bytes in a page, for the handler.
static PAGE_SIZE: AtomicUsize = AtomicUsize::new(0);
/// Whether a page was replaced.
static CUT: AtomicBool = AtomicBool::new(false);

/// Lets this process read zeros where a mapped file is no longer.
///
/// # Errors
/// What sigaction(2) reports.
pub fn survive_cut_files() -> io::Result<()> {
    PAGE_SIZE.store(crate::page_size(), Ordering::Relaxed);
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are a valid sigaction: no flags, an empty mask, the default handler.
    let action = unsafe { action.assume_init_mut() };
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = replace_page;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the handler has the signature that SA_SIGINFO asks for and calls nothing that a handler may not.
    let result = unsafe { libc::sigaction(libc::SIGBUS, action, ptr::null_mut()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Whether a mapped file was found cut short since the process began.
#[must_use]
pub fn found_cut_file() -> bool {
    CUT.load(Ordering::Acquire)
}

/// Puts a page of zeros where the file is no longer. Any other cause of SIGBUS, and a page that can't be
/// replaced, ends the process as if there were no handler.
extern "C" fn replace_page(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel hands over a filled siginfo_t; for SIGBUS it has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr()) };
    let size = PAGE_SIZE.load(Ordering::Relaxed);
    if code == BUS_ADRERR && size.is_power_of_two() {
        let page = ptr::without_provenance_mut(address.addr() & !(size - 1));
        // SAFETY: the faulting page belongs to a mapping whose file does not reach it, so that nobody can hold
        // data in it; the new page is as long, readable, and in its place. mmap(2) is a plain system call.
        let mapped = unsafe {
            libc::mmap(
                page,
                size,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if mapped == page {
            CUT.store(true, Ordering::Release);
            return;
        }
    }
    // SAFETY: signal(2) may be called here; the instruction is run again and ends the process.
    unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn what_is_gone_reads_as_zeros() {
        let size = crate::page_size();
        let path = std::env::temp_dir().join(format!("rperf-cut-{}", std::process::id()));
        fs::write(&path, vec![7; 3 * size]).unwrap();
        let file = File::options().write(true).read(true).open(&path).unwrap();
        let map = crate::map(&file).unwrap();
        assert_eq!((map[0], map[2 * size]), (7, 7));
        survive_cut_files().unwrap();
        file.set_len(size as u64).unwrap();
        assert_eq!((map[0], map[2 * size], map[3 * size - 1]), (7, 0, 0));
        assert!(found_cut_file());
        fs::remove_file(&path).unwrap();
    }
}
