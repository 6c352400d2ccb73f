//! Processes forked from this one.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::time::Duration;
use std::{ptr, thread};

/// Exit status of a child whose function panicked.
const PANICKED: u8 = 101;

/// Forked processes. Those that still run are killed when this is dropped.
#[derive(Debug, Default)]
pub struct Children {
    pids: Vec<libc::pid_t>,
}

impl Children {
    /// Forks a child that calls `run` and exits with the status that `run` returns, or 101 if it panics. Returns the child's
    /// pid; the child never returns from this call. The child is killed when the calling thread ends.
    ///
    /// The child has only the calling thread: a lock that another thread holds stays locked in the child. Buffers, such as that
    /// of the standard output, aren't flushed when the child exits.
    ///
    /// # Errors
    /// What fork(2) reports: `EAGAIN` at the limit of processes.
    pub fn fork(&mut self, run: impl FnOnce() -> u8) -> io::Result<u32> {
        // SAFETY: the child runs a function of this program with its own copy of the memory, then exits without running
        // destructors of its callers. The C library makes its allocator usable in the child.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                // SAFETY: the request takes numbers.
                unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                let status = catch_unwind(AssertUnwindSafe(run)).unwrap_or(PANICKED);
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(status.into()) }
            }
            pid => {
                self.pids.push(pid);
                Ok(pid.cast_unsigned())
            }
        }
    }

    /// Waits until all children have exited with status 0, and returns `None`. If one fails, kills the others and returns its
    /// status.
    ///
    /// # Errors
    /// What waitid(2) and wait4(2) report.
    pub fn wait(self) -> io::Result<Option<ExitStatus>> {
        Ok(self.wait_with_peak_memory()?.0)
    }

    /// Like [`Children::wait`]; also returns the highest peak resident set size of the children that were waited for, in KB.
    ///
    /// # Errors
    /// What waitid(2) and wait4(2) report.
    pub fn wait_with_peak_memory(mut self) -> io::Result<(Option<ExitStatus>, u64)> {
        let mut peak = 0;
        while !self.pids.is_empty() {
            let exited = self.next_exited()?;
            let (status, memory) = reap(exited)?;
            peak = memory.max(peak);
            self.pids.retain(|pid| *pid != exited);
            if !status.success() {
                // `drop` kills the others.
                return Ok((Some(status), peak));
            }
        }
        Ok((None, peak))
    }

    /// Reaps a child that has exited; returns its pid and its status, or `None` if no child has exited.
    ///
    /// # Errors
    /// What waitid(2) and wait4(2) report.
    pub fn reap_exited(&mut self) -> io::Result<Option<(u32, ExitStatus)>> {
        for index in 0..self.pids.len() {
            let Some(&pid) = self.pids.get(index) else {
                break;
            };
            if exited(libc::P_PID, pid.cast_unsigned(), libc::WNOHANG)? == pid {
                self.pids.swap_remove(index);
                return Ok(Some((pid.cast_unsigned(), reap(pid)?.0)));
            }
        }
        Ok(None)
    }

    /// Waits for one of the children to exit, without reaping it.
    fn next_exited(&self) -> io::Result<libc::pid_t> {
        loop {
            let (any_id, wait) = (0, 0);
            let first = exited(libc::P_ALL, any_id, wait)?;
            if self.pids.contains(&first) {
                return Ok(first);
            }
            // Another child of this process, such as the pager, has exited and is left for its owner. A further wait for any
            // child would return it again, so `pids` are polled.
            for pid in &self.pids {
                if exited(libc::P_PID, pid.cast_unsigned(), libc::WNOHANG)? == *pid {
                    return Ok(*pid);
                }
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.pids {
            // SAFETY: a child that is not reaped keeps its pid, so this reaches no other process.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
            let _ = reap(*pid);
        }
    }
}

/// Returns the pid of a child that has exited, without reaping it: one of those that `kind` and `id` select (waitid(2)). Waits
/// for one unless `options` has `WNOHANG`, with which the result is 0 if none has exited.
fn exited(kind: libc::idtype_t, id: libc::id_t, options: i32) -> io::Result<libc::pid_t> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = options | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: the call writes the structure passed to it.
    while unsafe { libc::waitid(kind, id, info.as_mut_ptr(), options) } != 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeros are a valid value, and the call fills the structure for a child that exited.
    Ok(unsafe { info.assume_init().si_pid() })
}

/// Waits for a child to exit; returns its status and its peak resident set size in KB.
fn reap(pid: libc::pid_t) -> io::Result<(ExitStatus, u64)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes the number and the structure passed to it.
    while unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    // SAFETY: zeros are a valid value of the structure, whose fields are numbers.
    let peak = unsafe { usage.assume_init() }.ru_maxrss;
    Ok((
        ExitStatus::from_raw(status),
        u64::try_from(peak).unwrap_or_default(),
    ))
}

/// Replaces this process by a program whose only argument is its path, with an empty environment (execve(2)). Returns only if
/// that fails.
#[must_use]
pub fn execute(path: &CStr) -> io::Error {
    let argv = [path.as_ptr(), ptr::null()];
    let environment = [ptr::null()];
    // SAFETY: the strings are terminated by NUL, the arrays by a null pointer.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Returns the id of this process's process group (getpgid(2)).
#[must_use]
pub fn process_group() -> i32 {
    // SAFETY: the call takes a number; 0 is this process.
    unsafe { libc::getpgid(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_children_are_waited_for() {
        let mut children = Children::default();
        let pids = [0, 0].map(|status| children.fork(|| status).unwrap());
        assert_ne!(pids[0], pids[1]);
        let (failed, peak) = children.wait_with_peak_memory().unwrap();
        assert_eq!(failed, None);
        // More than 100 KB even for a small process; the upper bound excludes only impossible values.
        assert!((100..1 << 40).contains(&peak), "{peak} KB");
    }

    #[test]
    fn a_failed_child_ends_the_others() {
        let mut children = Children::default();
        children
            .fork(|| {
                std::thread::sleep(std::time::Duration::from_secs(3600));
                0
            })
            .unwrap();
        children.fork(|| 7).unwrap();
        let failed = children.wait().unwrap().unwrap();
        assert_eq!(failed.code(), Some(7));
    }

    #[test]
    fn only_a_child_that_has_exited_is_reaped() {
        let mut children = Children::default();
        let (reader, writer) = io::pipe().unwrap();
        let mut gate = reader.try_clone().unwrap();
        let waiting = children
            .fork(|| {
                // Ends when the parent writes.
                u8::from(io::Read::read_exact(&mut gate, &mut [0]).is_err())
            })
            .unwrap();
        assert_eq!(children.reap_exited().unwrap(), None);
        let failing = children.fork(|| 9).unwrap();
        let reaped = |children: &mut Children| {
            loop {
                if let Some(reaped) = children.reap_exited().unwrap() {
                    return reaped;
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        let (pid, status) = reaped(&mut children);
        assert_eq!((pid, status.code()), (failing, Some(9)));
        io::Write::write_all(&mut &writer, b"g").unwrap();
        let (pid, status) = reaped(&mut children);
        assert_eq!((pid, status.code()), (waiting, Some(0)));
        assert_eq!(children.reap_exited().unwrap(), None);
    }

    #[test]
    fn a_child_becomes_another_program() {
        let mut children = Children::default();
        children
            .fork(|| {
                let _ = execute(c"/bin/false");
                0
            })
            .unwrap();
        let failed = children.wait().unwrap().unwrap();
        assert_eq!(failed.code(), Some(1));
        // Not in a child: this execve(2) fails, so the test continues.
        let error = execute(c"/dev/null");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }
}
