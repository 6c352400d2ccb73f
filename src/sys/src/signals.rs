//! Signals as readable events instead of handlers (signalfd(2)).

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counter::read_fd;

/// Signals that are blocked and read from a descriptor, until dropped.
///
/// Blocks them only in the calling thread and the threads it starts later: create this value before
/// other threads.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    /// The thread's signal mask before.
    before: libc::sigset_t,
    /// Whether SIGCHLD is among the signals and was ignored before, which discards the status of children.
    sigchld_ignored: bool,
    /// Whether it was created by [`Signals::block_for_run`].
    for_run: bool,
}

/// The signal mask before [`Signals::block_for_run`] blocked signals; `None` while no value that it returned exists. A run is the
/// execution of one rperf command.
static BEFORE_RUN: Mutex<Option<libc::sigset_t>> = Mutex::new(None);

fn before_run() -> MutexGuard<'static, Option<libc::sigset_t>> {
    BEFORE_RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signals {
    /// Blocks `numbers` (`SIGINT` and so on), except SIGHUP if it is ignored, as under nohup(1). If
    /// SIGCHLD is among them, it is no longer ignored.
    ///
    /// # Errors
    /// What sigprocmask(2) and signalfd(2) report.
    pub fn block(numbers: &[i32]) -> io::Result<Self> {
        let mut set = empty_set();
        // An ignored signal would still be read from the descriptor while blocked.
        let is_blocked = |number: &&i32| **number != libc::SIGHUP || !is_ignored(**number);
        for number in numbers.iter().filter(is_blocked) {
            // SAFETY: `set` is an initialised signal set.
            unsafe { libc::sigaddset(&raw mut set, *number) };
        }
        let mut before = empty_set();
        // SAFETY: both sets are initialised; the call only changes this thread's mask.
        let error =
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: the call reads the set and returns a new descriptor.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            restore(&before);
            return Err(error);
        }
        // SAFETY: the call succeeded, so `fd` is an open descriptor with no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let sigchld_ignored = numbers.contains(&libc::SIGCHLD) && is_ignored(libc::SIGCHLD);
        if sigchld_ignored {
            set_action(libc::SIGCHLD, libc::SIG_DFL);
        }
        Ok(Self {
            fd,
            before,
            sigchld_ignored,
            for_run: false,
        })
    }

    /// Like [`Signals::block`], for the whole run: a [`Workload`](crate::Workload) gets the signal mask
    /// from before this call, whichever thread starts it.
    ///
    /// # Errors
    /// Those of [`Signals::block`].
    pub fn block_for_run(numbers: &[i32]) -> io::Result<Self> {
        let mut signals = Self::block(numbers)?;
        *before_run() = Some(signals.before);
        signals.for_run = true;
        Ok(signals)
    }

    /// The next pending signal; `None` if there is none.
    ///
    /// # Errors
    /// What read(2) reports.
    pub fn next(&self) -> io::Result<Option<i32>> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        match read_fd(self.fd.as_fd(), &mut info) {
            Ok(_) => {
                // `ssi_signo` is the structure's first field, 32 bits wide.
                let number = info
                    .first_chunk()
                    .map_or(0, |bytes| u32::from_ne_bytes(*bytes));
                Ok(i32::try_from(number).ok())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The signal mask for a child process: while a value of [`Signals::block_for_run`] exists, the mask from before that value,
    /// otherwise the mask from before this one.
    pub(crate) fn child_mask(&self) -> libc::sigset_t {
        before_run().unwrap_or(self.before)
    }

    /// Whether SIGCHLD was ignored before: then a child process should ignore it, too.
    pub(crate) fn sigchld_was_ignored(&self) -> bool {
        self.sigchld_ignored
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Pending signals that were not read would be delivered: discard them first.
        while let Ok(Some(_)) = self.next() {}
        if self.for_run {
            *before_run() = None;
        }
        if self.sigchld_ignored {
            set_action(libc::SIGCHLD, libc::SIG_IGN);
        }
        restore(&self.before);
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set passed to it, so it may be read afterwards.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the kernel fills the structure, for which zeros are valid too; nothing is changed.
    let action = unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init()
    };
    action.sa_sigaction == libc::SIG_IGN
}

/// Sets the action of a signal to the default or to ignore.
fn set_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: `action` is `SIG_DFL` or `SIG_IGN`: no function is installed.
    unsafe { libc::signal(signal, action) };
}

fn restore(mask: &libc::sigset_t) {
    // SAFETY: the mask was returned by the kernel.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(mask), ptr::null_mut()) };
}

/// Ends this process by `signal` with its default action, so that the parent sees which signal ended it. Returns only if the
/// default action doesn't end processes.
pub fn exit_by_signal(signal: i32) {
    let mut set = empty_set();
    // SAFETY: `set` is an initialised signal set; the rest restores the default action, unblocks
    // the signal in this thread and raises it, and touches no memory of this process.
    unsafe {
        libc::sigaddset(&raw mut set, signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// The C library's description of a signal (`Terminated`).
#[must_use]
pub fn signal_text(signal: i32) -> String {
    // SAFETY: the text is static or thread-local, and copied before any other call.
    let text = unsafe { libc::strsignal(signal) };
    if text.is_null() {
        return format!("Unknown signal {signal}");
    }
    // SAFETY: strsignal(3) returns a string that ends with a NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Waits until one of `fds` is ready or `timeout_millis` have passed (-1: no limit). Returns for
/// each descriptor whether it is readable, and whether it is closed or invalid (`POLLHUP`,
/// `POLLERR`, `POLLNVAL`).
///
/// # Errors
/// What poll(2) reports, except `EINTR`: then no descriptor is ready.
pub fn poll(fds: &[BorrowedFd<'_>], timeout_millis: i32) -> io::Result<Vec<Ready>> {
    let mut list: Vec<_> = fds
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let count = libc::nfds_t::try_from(list.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads and writes `count` entries of the list.
    if unsafe { libc::poll(list.as_mut_ptr(), count, timeout_millis) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let ready = list.iter().map(|entry| Ready {
        readable: entry.revents & libc::POLLIN != 0,
        closed: entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0,
    });
    Ok(ready.collect())
}

/// State of a descriptor after [`poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// Whether there is something to read.
    pub readable: bool,
    /// Whether the other end is closed, or the descriptor is invalid; for an event, whether its task has exited.
    pub closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_descriptions() {
        assert_eq!(signal_text(libc::SIGTERM), "Terminated");
        // C libraries have different texts for it: `Unknown signal 12345`, for example.
        assert!(signal_text(12345).contains("ignal"));
    }

    #[test]
    fn a_blocked_signal_is_read_not_delivered() {
        let signals = Signals::block(&[libc::SIGUSR2]).unwrap();
        assert_eq!(signals.next().unwrap(), None);
        // SAFETY: sends a signal to this thread, which blocks it.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) };
        assert_eq!(
            poll(&[signals.as_fd()], 1000).unwrap(),
            [Ready {
                readable: true,
                closed: false
            }]
        );
        assert_eq!(signals.next().unwrap(), Some(libc::SIGUSR2));
    }
}
