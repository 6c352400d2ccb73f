//! Memory that runs out: an allocator that ends the process with a message instead of a bare abort.
//!
//! The standard library cannot return an error for most requests: when one fails it prints a line and a backtrace and
//! calls abort(3). The allocator ends the process before that, unless the request was made through `rperf_memory`: it
//! restores the terminal, waits for the pager, and prints how many bytes were asked for and what can be done about it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

/// What is printed; null before [`explain_out_of_memory`].
static MESSAGE: AtomicPtr<OutOfMemoryMessage> = AtomicPtr::new(ptr::null_mut());
/// The terminal whose modes were changed; null while there is none.
static TERMINAL: AtomicPtr<SavedTerminal> = AtomicPtr::new(ptr::null_mut());
/// Process id of the pager, and the descriptor that it reads the end of; 0 and -1 without one.
static PAGER: (AtomicI32, AtomicI32) = (AtomicI32::new(0), AtomicI32::new(-1));
/// Whether a thread prints the message already.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The allocator of the standard library; once [`explain_out_of_memory`] was called, a request that fails ends the process
/// with a message, unless it was made through `rperf_memory`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// The text around the number of bytes that could not be allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfMemoryMessage {
    /// Before the number.
    pub before: String,
    /// Behind it, up to the last newline.
    pub after: String,
    /// Exit status of the process.
    pub status: u8,
}

/// The modes of a terminal as they are now. While this lives they are restored if memory runs out.
#[derive(Debug)]
pub struct TerminalBackup(*mut SavedTerminal);

// SAFETY: the pointer is only compared; what it points to is never changed or freed.
unsafe impl Send for TerminalBackup {}

/// What restores a terminal.
struct SavedTerminal {
    input: OwnedFd,
    modes: libc::termios,
    output: OwnedFd,
    /// Escape sequences that leave the alternate screen and the like.
    text: Vec<u8>,
}

// SAFETY: every request is passed on as it came, so that the contract which the caller keeps is the one of `System`, and
// what `System` promises is promised here. What ends the process does not allocate, and cannot unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.realloc(block, layout, new_size) }, new_size)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        fail(size);
    }
    block
}

/// Ends the process, unless the request may fail.
#[cold]
#[inline(never)]
fn fail(size: usize) {
    // SAFETY: it is null or was leaked by `explain_out_of_memory`, and is never changed.
    let message = unsafe { MESSAGE.load(Ordering::Acquire).as_ref() };
    if let Some(message) = message.filter(|_| !rperf_memory::is_fallible()) {
        message.end(size);
    }
}

/// From now on a failed request prints `message` and ends the process with its status. Called again, the later message
/// counts.
pub fn explain_out_of_memory(message: OutOfMemoryMessage) {
    // Never freed: another thread may be reading it.
    let message = Box::into_raw(Box::new(message));
    MESSAGE.store(message, Ordering::Release);
}

impl OutOfMemoryMessage {
    /// Calls nothing that allocates or waits for a lock: those of this process may be held for ever.
    fn end(&self, size: usize) -> ! {
        if ENDING.swap(true, Ordering::AcqRel) {
            loop {
                // SAFETY: the thread waits for the end that another one prepares.
                unsafe { libc::pause() };
            }
        }
        // SAFETY: it is null or was leaked by `TerminalBackup::save`, and is never changed.
        if let Some(terminal) = unsafe { TERMINAL.load(Ordering::Acquire).as_ref() } {
            terminal.restore();
        }
        wait_for_pager();
        let mut digits = [0; 20];
        write_all(libc::STDERR_FILENO, self.before.as_bytes());
        write_all(libc::STDERR_FILENO, decimal(size, &mut digits));
        write_all(libc::STDERR_FILENO, self.after.as_bytes());
        // SAFETY: ends the process without running anything else of it.
        unsafe { libc::_exit(self.status.into()) }
    }
}

/// Notes the pager: its process, and the pipe that it reads from, which is closed before it is waited for.
pub fn note_pager(process: u32, pipe: &impl AsFd) {
    PAGER.1.store(pipe.as_fd().as_raw_fd(), Ordering::Release);
    let process = i32::try_from(process).unwrap_or_default();
    PAGER.0.store(process, Ordering::Release);
}

/// Forgets the pager: its pipe is about to be closed.
pub fn forget_pager() {
    PAGER.0.store(0, Ordering::Release);
    PAGER.1.store(-1, Ordering::Release);
}

impl TerminalBackup {
    /// Saves the modes of the terminal behind `input`; `text` is what restores its screen, written to `output`.
    ///
    /// # Errors
    /// `ENOTTY` if it is no terminal; what dup(2) reports.
    pub fn save(input: &impl AsFd, output: &impl AsFd, text: Vec<u8>) -> io::Result<Self> {
        let input = input.as_fd().try_clone_to_owned()?;
        let output = output.as_fd().try_clone_to_owned()?;
        let mut modes = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the call writes no more than the structure that it is given.
        if unsafe { libc::tcgetattr(input.as_raw_fd(), modes.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let saved = SavedTerminal {
            input,
            // SAFETY: the call succeeded, so the structure is filled in.
            modes: unsafe { modes.assume_init() },
            output,
            text,
        };
        // Never freed: another thread may be reading it.
        let saved = Box::into_raw(Box::new(saved));
        TERMINAL.store(saved, Ordering::Release);
        Ok(Self(saved))
    }
}

impl Drop for TerminalBackup {
    fn drop(&mut self) {
        let none = ptr::null_mut();
        // If another one was saved since, that one stays.
        let _ = TERMINAL.compare_exchange(self.0, none, Ordering::AcqRel, Ordering::Relaxed);
    }
}

impl SavedTerminal {
    fn restore(&self) {
        write_all(self.output.as_raw_fd(), &self.text);
        // SAFETY: the structure came from tcgetattr and is only read.
        unsafe { libc::tcsetattr(self.input.as_raw_fd(), libc::TCSANOW, &raw const self.modes) };
    }
}

/// Lets the user leave the pager.
fn wait_for_pager() {
    let process = PAGER.0.load(Ordering::Acquire);
    let pipe = PAGER.1.load(Ordering::Acquire);
    if process > 0 && pipe >= 0 {
        // SAFETY: nothing of this process is written to the pipe any more; the process is a child that nobody else waits for.
        unsafe {
            libc::close(pipe);
            libc::waitpid(process, ptr::null_mut(), 0);
        }
    }
}

/// Writes all of `bytes`, or as much as can be.
fn write_all(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the buffer is as long as is said.
        let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => bytes = bytes.get(count..).unwrap_or_default(),
            _ => return,
        }
    }
}

/// A number without any allocation.
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start = index;
        if number == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for number in [0, 7, 10, 163_840, usize::MAX] {
            let mut digits = [0; 20];
            assert_eq!(decimal(number, &mut digits), number.to_string().as_bytes());
        }
    }

    #[test]
    fn requests_are_passed_on_and_a_failed_one_returns_without_a_message() {
        let huge = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: the layouts have a size; what was allocated is freed with the layout it has.
        unsafe {
            assert!(Allocator.alloc(huge).is_null());
            let layout = Layout::new::<[u64; 4]>();
            let block = Allocator.alloc_zeroed(layout);
            let block = Allocator.realloc(block, layout, 64);
            assert_eq!(*block, 0);
            Allocator.dealloc(block, Layout::from_size_align(64, 8).unwrap());
        }
    }
}
