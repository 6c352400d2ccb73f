//! Child processes, and the comm of a thread.

use std::ffi::CStr;
use std::io;

use crate::{WorkloadError, failed};

/// A process that runs a part of a workload.
pub(crate) struct ChildProcess {
    pid: libc::pid_t,
}

impl ChildProcess {
    /// Forks; the child runs `body` and ends with status 0 if `body` returns true, otherwise 1.
    ///
    /// `body` must take no lock and must not allocate if the calling process has other threads, as it has in a test: a lock that
    /// another thread holds at the fork is never released in the child.
    pub(crate) fn fork(body: impl FnOnce() -> bool) -> Result<Self, WorkloadError> {
        // SAFETY: a workload starts no threads before it forks; with other threads, the child takes no lock (see above).
        match unsafe { libc::fork() } {
            0 => {
                // The child may wait for its parent, so it must end if the parent is killed.
                // SAFETY: sets an attribute of this process.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let status = libc::c_int::from(!body());
                // SAFETY: ends the child without running atexit handlers and destructors inherited from the parent.
                unsafe { libc::_exit(status) }
            }
            pid if pid > 0 => Ok(Self { pid }),
            _ => Err(failed("cannot fork")(io::Error::last_os_error())),
        }
    }

    /// Waits for the child's end; an error if it exited with a status other than 0 or was killed by a signal.
    pub(crate) fn wait(self, workload: &'static str) -> Result<(), WorkloadError> {
        let mut status = 0;
        loop {
            // SAFETY: `pid` is a child of this process that has not been waited for; `status` is writable.
            let waited = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
            if waited == self.pid {
                let part = "child process";
                return match status {
                    0 => Ok(()),
                    _ => Err(WorkloadError::Ended { workload, part }),
                };
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(failed("cannot wait for a child process")(error));
            }
        }
    }
}

/// Sets the comm of this thread.
pub(crate) fn set_comm(name: &CStr) {
    // SAFETY: the name is a terminated string; the kernel reads at most 16 bytes of it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}
