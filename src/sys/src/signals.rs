//! Signals taken as readable events instead of handlers (signalfd(2)).

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counter::read_fd;

/// Signals that are held back and read from a descriptor, until dropped.
///
/// Only the calling thread and the threads it starts later hold them back: make this before others.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
    /// Whether ends of children were ignored before, which keeps their status from their parent.
    children_ignored: bool,
    /// Made by [`Signals::hold_for_run`].
    for_run: bool,
}

/// The mask from before the signals that are held back for all of the run.
static BEFORE_RUN: Mutex<Option<libc::sigset_t>> = Mutex::new(None);

fn before_run() -> MutexGuard<'static, Option<libc::sigset_t>> {
    BEFORE_RUN.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Signals {
    /// Holds back `numbers` (`SIGINT` and so on), but SIGHUP where it is ignored, as nohup(1) has it. Who is to be told of
    /// the end of children (SIGCHLD) is so, though it was ignored until then.
    ///
    /// # Errors
    /// What sigprocmask(2) and signalfd(2) report.
    pub fn hold(numbers: &[i32]) -> io::Result<Self> {
        let mut set = empty_set();
        // An ignored signal that is held back would be read all the same.
        let is_meant = |number: &&i32| **number != libc::SIGHUP || !is_ignored(**number);
        for number in numbers.iter().filter(is_meant) {
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
        // SAFETY: the call succeeded, so `fd` is an open descriptor that nobody else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let children_ignored = numbers.contains(&libc::SIGCHLD) && is_ignored(libc::SIGCHLD);
        if children_ignored {
            set_action(libc::SIGCHLD, libc::SIG_DFL);
        }
        Ok(Self {
            fd,
            before,
            children_ignored,
            for_run: false,
        })
    }

    /// The same around all that holds signals back later, in whatever thread: children get the mask from before this one.
    ///
    /// # Errors
    /// As of [`Signals::hold`].
    pub fn hold_for_run(numbers: &[i32]) -> io::Result<Self> {
        let mut held = Self::hold(numbers)?;
        *before_run() = Some(held.before);
        held.for_run = true;
        Ok(held)
    }

    /// The next signal that came in; `None` when there is none at the moment.
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

    /// The signal mask from before, for a child process.
    pub(crate) fn before(&self) -> libc::sigset_t {
        before_run().unwrap_or(self.before)
    }

    /// Whether a child process is to ignore the end of its children, as this one did before.
    pub(crate) fn children_were_ignored(&self) -> bool {
        self.children_ignored
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals that came in and were not read have had their effect: take them off first.
        while let Ok(Some(_)) = self.next() {}
        if self.for_run {
            *before_run() = None;
        }
        if self.children_ignored {
            set_action(libc::SIGCHLD, libc::SIG_IGN);
        }
        restore(&self.before);
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set it is given, so it may be read afterwards.
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

/// Gives a signal one of the two actions that run no code of this process.
fn set_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: `action` is `SIG_DFL` or `SIG_IGN`: no function is installed.
    unsafe { libc::signal(signal, action) };
}

fn restore(mask: &libc::sigset_t) {
    // SAFETY: the mask is one that the kernel returned earlier.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(mask), ptr::null_mut()) };
}

/// Ends this process by `signal`, as if it had not been handled, so that the parent sees it.
/// Returns only when the signal doesn't end processes.
pub fn die_by(signal: i32) {
    let mut set = empty_set();
    // SAFETY: `set` is an initialised signal set; the rest restores the default action, lets this thread take the signal and
    // raises it, and touches no memory of this process.
    unsafe {
        libc::sigaddset(&raw mut set, signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// The C library's words for a signal (`Terminated`).
#[must_use]
pub fn signal_text(signal: i32) -> String {
    // SAFETY: the text is static or this thread's own, and copied before anything else is called.
    let text = unsafe { libc::strsignal(signal) };
    if text.is_null() {
        return format!("Unknown signal {signal}");
    }
    // SAFETY: strsignal(3) returns a string that ends with a NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// What has become ready among `fds` within `timeout_millis` (-1: no limit): one flag per descriptor
/// that it is readable, and one that its other end is gone (`POLLHUP`, `POLLERR`).
///
/// # Errors
/// What poll(2) reports; an interruption counts as nothing ready.
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

/// State of one descriptor after [`poll`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// There is something to read.
    pub readable: bool,
    /// The other end is gone: for an event, its task has ended.
    pub closed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_text(libc::SIGTERM), "Terminated");
        assert!(signal_text(12345).contains("ignal"));
    }

    #[test]
    fn a_held_signal_is_read_not_delivered() {
        let signals = Signals::hold(&[libc::SIGUSR2]).unwrap();
        assert_eq!(signals.next().unwrap(), None);
        // SAFETY: sends a signal to this thread, which holds it back.
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
