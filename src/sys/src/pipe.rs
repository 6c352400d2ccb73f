//! Pipes.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// The increased capacity in bytes, which is the default limit for unprivileged users (`/proc/sys/fs/pipe-max-size`).
const WIDE: i32 = 1 << 20;

/// Sets the capacity of a pipe, by default 64 KiB, to 1 MiB, to reduce context switches between
/// writer and reader (`F_SETPIPE_SZ`, fcntl(2)). No effect if `pipe` isn't a pipe or this is not permitted.
pub fn widen_pipe(pipe: impl AsFd) {
    // SAFETY: the borrowed descriptor is open; the request takes a number.
    let _ = unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, WIDE) };
}

/// Makes reads and writes of a descriptor return at once, with `EAGAIN` if they would wait.
///
/// # Errors
/// What fcntl(2) reports.
pub fn set_nonblocking(fd: impl AsFd) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: the borrowed descriptor is open; the requests take numbers.
    let set = unsafe {
        match libc::fcntl(fd, libc::F_GETFL) {
            -1 => -1,
            flags => libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK),
        }
    };
    match set {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets programs that are started later inherit `fd`.
///
/// # Errors
/// What fcntl(2) reports.
pub fn keep_open_in_children(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: changes only the flags of an open descriptor: 0 clears `FD_CLOEXEC`.
    match unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_SETFD, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_widened_pipe_holds_a_megabyte() {
        let (reader, mut writer) = io::pipe().unwrap();
        widen_pipe(&writer);
        // SAFETY: the descriptor is open; the request takes no argument.
        let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
        if size < WIDE {
            // The system has a lower limit for unprivileged users.
            return;
        }
        writer.write_all(&vec![0; WIDE as usize]).unwrap();
        drop(reader);
        // Not a pipe: no effect.
        widen_pipe(File::open("/dev/null").unwrap());
    }

    #[test]
    fn reads_of_a_nonblocking_pipe_do_not_wait() {
        use std::io::Read as _;
        let (mut reader, _writer) = io::pipe().unwrap();
        set_nonblocking(&reader).unwrap();
        let error = reader.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
