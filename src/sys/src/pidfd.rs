//! Notification when a task exits, even if it is not a child (pidfd_open(2), Linux 5.3).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd};

/// `PIDFD_THREAD` (Linux 6.9): the descriptor refers to one thread instead of its process.
const PIDFD_THREAD: libc::c_uint = libc::O_EXCL.cast_unsigned();
/// No flags: the descriptor refers to a process with all its threads.
const WHOLE_PROCESS: libc::c_uint = 0;

/// A descriptor that becomes readable when its task exits.
#[derive(Debug)]
pub struct Pidfd(OwnedFd);

impl Pidfd {
    /// Opens a thread. Before Linux 6.9 only a thread-group leader can be opened, and the descriptor refers to its whole process.
    ///
    /// # Errors
    /// What pidfd_open(2) reports: `ESRCH` if there is no such task; before Linux 6.9 `EINVAL`
    /// for a thread that isn't a leader; `ENOSYS` before Linux 5.3.
    pub fn of_thread(tid: u32) -> io::Result<Self> {
        match Self::open(tid, PIDFD_THREAD) {
            // The kernel does not know the flag.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Self::open(tid, WHOLE_PROCESS)
            }
            opened => opened,
        }
    }

    /// Opens a process with all its threads.
    ///
    /// # Errors
    /// What pidfd_open(2) reports: `ESRCH` if there is no such task, `EINVAL` (newer kernels: `ENOENT`) if
    /// `pid` is a thread that isn't a leader, `ENOSYS` before Linux 5.3.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        Self::open(pid, WHOLE_PROCESS)
    }

    fn open(task: u32, flags: libc::c_uint) -> io::Result<Self> {
        // SAFETY: the call takes numbers and returns a new descriptor, or fails.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, task.cast_signed(), flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: the call succeeded, so `fd` is an open descriptor with no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

impl AsFd for Pidfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::poll;

    fn is_over(pidfd: &Pidfd, timeout_millis: i32) -> bool {
        poll(&[pidfd.as_fd()], timeout_millis).unwrap()[0].readable
    }

    #[test]
    fn the_end_of_a_process_is_reported() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        // The only thread of the child: its end is that of the process.
        let pidfd = Pidfd::of_thread(child.id());
        let before = pidfd.as_ref().ok().map(|pidfd| is_over(pidfd, 0));
        child.kill().unwrap();
        let after = pidfd.as_ref().ok().map(|pidfd| is_over(pidfd, 10_000));
        child.wait().unwrap();
        assert!(Pidfd::of_process(child.id()).is_err());
        // Kernels before 5.3 don't support this.
        let is_supported = pidfd.is_ok();
        assert_eq!(
            (before, after),
            (is_supported.then_some(false), is_supported.then_some(true))
        );
    }
}
