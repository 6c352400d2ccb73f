//! System calls that another thread or process answers (seccomp_unotify(2), Linux 5.0).

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::Pidfd;

/// Offsets of the call's number and of the architecture in `seccomp_data` (linux/seccomp.h).
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
/// `SECCOMP_IOCTL_NOTIF_SET_FLAGS` (Linux 6.6): `_IOW('!', 4, u64)`.
const SET_FLAGS: libc::Ioctl = 0x4008_2104;
/// `SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP`.
const SYNC_WAKE_UP: u64 = 1;
/// `SECCOMP_IOCTL_NOTIF_RECV`: `_IOWR('!', 0, struct seccomp_notif)`.
const RECEIVE: libc::Ioctl = request(0, size_of::<libc::seccomp_notif>());
/// `SECCOMP_IOCTL_NOTIF_SEND`: `_IOWR('!', 1, struct seccomp_notif_resp)`.
const SEND: libc::Ioctl = request(1, size_of::<libc::seccomp_notif_resp>());

/// `AUDIT_ARCH_…` of this build (linux/audit.h).
const AUDIT_ARCH: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// `_IOWR('!', number, size)`. The type of requests differs between C libraries.
const fn request(number: u32, size: usize) -> libc::Ioctl {
    (0xc000_0000_u32 | (size as u32) << 16 | 0x2100 | number) as libc::Ioctl
}

/// The descriptor on which a process receives the `getppid` calls of another thread. `bench sched seccomp-notify`
/// measures such calls.
#[derive(Debug)]
pub struct GetppidListener(OwnedFd);

impl GetppidListener {
    /// Makes every later getppid(2) of the calling thread, and of tasks that it starts later, wait for an answer through the
    /// returned listener. Also sets the thread's `no_new_privs` (prctl(2)), which seccomp(2) requires of unprivileged users.
    /// Neither can be undone.
    ///
    /// # Errors
    /// What prctl(2) and seccomp(2) report: `EINVAL` or `ENOSYS` on kernels without listeners, `EBUSY` if the thread already has
    /// one; [`io::ErrorKind::Unsupported`] on other architectures than x86-64 and arm64.
    pub fn install() -> io::Result<Self> {
        let arch = AUDIT_ARCH.ok_or(io::ErrorKind::Unsupported)?;
        let call = u32::try_from(libc::SYS_getppid).map_err(|_| io::ErrorKind::Unsupported)?;
        let load = |offset| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset);
        // If the loaded value is not `value`, skips the next `skipped` statements.
        let differs = |value, skipped| libc::sock_filter {
            jf: skipped,
            ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value)
        };
        let result = |value| statement(libc::BPF_RET | libc::BPF_K, value);
        let mut filter = [
            load(ARCH),
            differs(arch, 3),
            load(NUMBER),
            differs(call, 1),
            result(libc::SECCOMP_RET_USER_NOTIF),
            result(libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: 6,
            filter: filter.as_mut_ptr(),
        };
        // SAFETY: the request takes numbers.
        if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel reads the program and its six statements, which outlive the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
                &raw const program,
            )
        };
        Self::owned(fd)
    }

    /// Returns the number of the descriptor in this process, for [`GetppidListener::of_process`].
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Duplicates descriptor `number` of another process (pidfd_getfd(2), Linux 5.6).
    ///
    /// # Errors
    /// What pidfd_getfd(2) reports: `EPERM` if that process may not be traced, `EBADF` for a wrong number, `ENOSYS` before Linux
    /// 5.6.
    pub fn of_process(process: &Pidfd, number: i32) -> io::Result<Self> {
        let pidfd = std::os::fd::AsFd::as_fd(process).as_raw_fd();
        // SAFETY: the call takes numbers and returns a new descriptor, or fails.
        Self::owned(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, number, 0) })
    }

    /// From now on, a task that waits for a call or an answer is woken on the CPU of the task that sends it, if possible.
    ///
    /// # Errors
    /// What ioctl(2) reports: `EINVAL` before Linux 6.6.
    pub fn wake_synchronously(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open; the request takes a number.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SET_FLAGS, SYNC_WAKE_UP) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for a call and answers it with `value`.
    ///
    /// # Errors
    /// What ioctl(2) reports: `ENOENT` if the thread that made the call has ended, or if a signal interrupted that call.
    pub fn answer(&self, value: i64) -> io::Result<()> {
        // SAFETY: the structure consists of numbers, for which zeros are valid; the kernel requires zeros.
        let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills the structure passed to it, whose size is part of the request.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE, &raw mut call) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut answer = libc::seccomp_notif_resp {
            id: call.id,
            val: value,
            error: 0,
            flags: 0,
        };
        // SAFETY: the kernel reads the structure passed to it, whose size is part of the request.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), SEND, &raw mut answer) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn owned(fd: libc::c_long) -> io::Result<Self> {
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: the call that returned it succeeded, so `fd` is an open descriptor with no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }
}

/// A statement without jumps.
fn statement(code: u32, value: u32) -> libc::sock_filter {
    libc::sock_filter {
        // The codes are sums of constants below 256.
        code: u16::try_from(code).unwrap_or_default(),
        jt: 0,
        jf: 0,
        k: value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::parent_id;

    #[test]
    fn another_thread_answers_getppid() {
        let (sender, listeners) = std::sync::mpsc::channel();
        let caller = std::thread::spawn(move || {
            let listener = GetppidListener::install();
            let installed = listener.is_ok();
            sender.send(listener).unwrap();
            installed.then(parent_id)
        });
        let Ok(listener) = listeners.recv().unwrap() else {
            // Kernels before 5.0, and sandboxes, do not allow it.
            assert_eq!(caller.join().unwrap(), None);
            return;
        };
        listener.answer(12345).unwrap();
        assert_eq!(caller.join().unwrap(), Some(12345));
        assert_ne!(parent_id(), 12345);
    }
}
