//! An allocator that ends the process with a message when memory is exhausted, instead of a bare
//! abort.
//!
//! The standard library cannot return an error for most allocations: if one fails it prints a line
//! and a backtrace and calls abort(3). Before that, this allocator restores the terminal, waits for
//! the pager, prints the requested size and a hint, and ends the process. Allocations made through
//! `rperf_memory` return an error instead.

#[cfg(not(target_env = "musl"))]
use std::alloc::System as Underlying;
use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::panic;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

#[cfg(target_env = "musl")]
use crate::block_cache::BlockCache as Underlying;

/// The message; null before [`explain_out_of_memory`].
static MESSAGE: AtomicPtr<OutOfMemoryMessage> = AtomicPtr::new(ptr::null_mut());
/// The terminal whose modes (those of tcsetattr(3)) were changed; null if there is none.
static TERMINAL: AtomicPtr<SavedTerminal> = AtomicPtr::new(ptr::null_mut());
/// Process id of the pager; 0 if there is none.
static PAGER_PROCESS: AtomicI32 = AtomicI32::new(0);
/// The descriptor of the pipe to the pager; -1 if there is none.
static PAGER_PIPE: AtomicI32 = AtomicI32::new(-1);
/// Whether a thread is already ending the process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Sets the panic hook once.
static PANIC_HOOK: Once = Once::new();
/// Start of the standard library's panic message for a thread that cannot get its signal stack.
const NO_SIGNAL_STACK: &str = "failed to allocate an alternative stack";

/// The global allocator. After [`explain_out_of_memory`], a failed allocation ends the process with
/// a message, unless it was made through `rperf_memory`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allocator;

/// The text around the number of bytes that could not be allocated, and the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfMemoryMessage {
    /// Text before the number.
    pub before: String,
    /// Text after the number, ending with a newline.
    pub after: String,
    /// Exit status of the process.
    pub status: u8,
}

/// Saved modes (those of tcgetattr(3)) of a terminal, restored if memory is exhausted while this value lives.
#[derive(Debug)]
pub struct TerminalBackup(*mut SavedTerminal);

// SAFETY: the pointer is only compared; what it points to is never changed or freed.
unsafe impl Send for TerminalBackup {}

/// State needed to restore a terminal.
struct SavedTerminal {
    input: OwnedFd,
    modes: libc::termios,
    output: OwnedFd,
    /// Escape sequences that leave the alternate screen and similar states of the output; `modes` does not include these.
    text: Vec<u8>,
}

// SAFETY: every request is passed on unchanged, so the contract of `Underlying` applies. Code that ends
// the process does not allocate, and cannot unwind.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { Underlying.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { Underlying.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        checked(
            unsafe { Underlying.realloc(block, layout, new_size) },
            new_size,
        )
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { Underlying.dealloc(block, layout) }
    }
}

#[inline]
fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        fail(size);
    }
    block
}

/// Ends the process. Returns only if the failed allocation was made through `rperf_memory`, whose caller handles the error, or if
/// there is no message.
#[cold]
#[inline(never)]
fn fail(size: usize) {
    // SAFETY: it is null or was leaked by `explain_out_of_memory`, and is never changed.
    let message = unsafe { MESSAGE.load(Ordering::Acquire).as_ref() };
    if let Some(message) = message.filter(|_| !rperf_memory::is_fallible()) {
        message.end(size);
    }
}

/// Sets the message and exit status for failed allocations; a later call replaces an earlier one. Installs a handler of
/// `SIGABRT` and a panic hook.
pub fn explain_out_of_memory(message: OutOfMemoryMessage) {
    // Never freed: another thread may be reading it.
    let message = Box::into_raw(Box::new(message));
    MESSAGE.store(message, Ordering::Release);
    let handler: extern "C" fn(libc::c_int) = on_abort;
    // SAFETY: the handler takes no locks and allocates nothing: apart from atomic operations and a thread-local flag, it only
    // makes system calls.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
    PANIC_HOOK.call_once(set_panic_hook);
}

/// Installs a panic hook. The standard library panics in a thread that cannot get its signal stack: the hook reports this as a
/// failed allocation.
fn set_panic_hook() {
    let print_panic = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>();
        let has_no_stack = text.is_some_and(|text| text.starts_with(NO_SIGNAL_STACK));
        // If another thread is ending the process, this one waits in `fail`.
        if has_no_stack || IS_ENDING.load(Ordering::Acquire) {
            fail(libc::SIGSTKSZ);
        }
        print_panic(panic);
    }));
}

/// Memory counts as exhausted if this number of bytes cannot be mapped.
const PROBED: usize = 1 << 20;

/// Handles `SIGABRT`. The C library aborts if its own allocations fail, for example when a thread
/// starts. If memory is exhausted, the handler reports a failed allocation; otherwise it returns, and
/// abort(3) ends the process.
extern "C" fn on_abort(_signal: libc::c_int) {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping changes no other memory.
    let probe = unsafe { libc::mmap(ptr::null_mut(), PROBED, access, flags, -1, 0) };
    // If another thread is ending the process, this one waits in `fail`.
    if probe == libc::MAP_FAILED || IS_ENDING.load(Ordering::Acquire) {
        fail(PROBED);
    }
}

impl OutOfMemoryMessage {
    /// Restores the terminal, waits for the pager, prints the message and exits. Must not allocate, and must
    /// not take locks: their holder may never release them.
    fn end(&self, size: usize) -> ! {
        if IS_ENDING.swap(true, Ordering::AcqRel) {
            loop {
                // SAFETY: another thread is ending the process; this one waits.
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
        // SAFETY: ends the process without running any other code.
        unsafe { libc::_exit(self.status.into()) }
    }
}

/// Registers the pager: its process id, and the writing end of the pipe that the pager reads. If memory is exhausted, this end
/// is closed and the pager is waited for.
pub fn note_pager(process: u32, pipe: &impl AsFd) {
    PAGER_PIPE.store(pipe.as_fd().as_raw_fd(), Ordering::Release);
    let process = i32::try_from(process).unwrap_or_default();
    PAGER_PROCESS.store(process, Ordering::Release);
}

/// Unregisters the pager: from now on, the caller waits for it.
pub fn forget_pager() {
    PAGER_PROCESS.store(0, Ordering::Release);
    PAGER_PIPE.store(-1, Ordering::Release);
}

impl TerminalBackup {
    /// Saves the modes of the terminal `input`. If memory is exhausted, they are restored, and `text`, which restores the screen,
    /// is written to `output`.
    ///
    /// # Errors
    /// `ENOTTY` if `input` is not a terminal; `EMFILE` if there are too many open files to duplicate both.
    pub fn save(input: &impl AsFd, output: &impl AsFd, text: Vec<u8>) -> io::Result<Self> {
        let input = input.as_fd().try_clone_to_owned()?;
        let output = output.as_fd().try_clone_to_owned()?;
        let mut modes = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the call writes no more than the structure passed to it.
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
        // A value saved later stays registered.
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

/// Closes the pipe to the pager, and waits until the user leaves the pager.
fn wait_for_pager() {
    let process = PAGER_PROCESS.load(Ordering::Acquire);
    let pipe = PAGER_PIPE.load(Ordering::Acquire);
    if process > 0 && pipe >= 0 {
        // SAFETY: the calling process writes nothing to the pipe any more; the pager, `process`, is its child, and no other code
        // waits for it.
        unsafe {
            libc::close(pipe);
            libc::waitpid(process, ptr::null_mut(), 0);
        }
    }
}

/// Writes `bytes` up to the first error.
fn write_all(fd: RawFd, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the length is that of the buffer.
        let count = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => bytes = bytes.get(count..).unwrap_or_default(),
            _ => return,
        }
    }
}

/// Formats a number without allocating; `usize::MAX` has 20 digits.
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
    fn numbers_match_the_standard_library() {
        for number in [0, 7, 10, 163_840, usize::MAX] {
            let mut digits = [0; 20];
            assert_eq!(decimal(number, &mut digits), number.to_string().as_bytes());
        }
    }

    // "Without a message": `explain_out_of_memory` was not called.
    #[test]
    fn requests_are_passed_on_and_a_failed_one_returns_without_a_message() {
        let huge = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: the layouts have a non-zero size; the memory is freed with the same layout.
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
