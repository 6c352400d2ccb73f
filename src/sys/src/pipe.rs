//! Pipes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// What an ordinary user may have (`/proc/sys/fs/pipe-max-size`), in bytes.
const WIDE: i32 = 1 << 20;

/// Lets a pipe hold a megabyte instead of 64 KiB, so that writer and reader need not take turns (`F_SETPIPE_SZ`, fcntl(2)). What
/// is no pipe, or may not be wider, stays as it is.
pub fn widen_pipe(pipe: impl AsFd) {
    // SAFETY: the descriptor is open as long as it is borrowed; the request takes a number.
    let _ = unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, WIDE) };
}

/// Opens a fifo for both directions, so that neither end waits for the other nor sees it go (fifo(7)).
///
/// # Errors
/// What open(2) reports.
pub fn open_fifo(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true);
    options.custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_pipe_takes_a_megabyte_without_a_reader() {
        let (reader, mut writer) = io::pipe().unwrap();
        widen_pipe(&writer);
        // SAFETY: the descriptor is open; the request takes no argument.
        let size = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
        if size < WIDE {
            // A system with a lower limit, for others than root.
            return;
        }
        writer.write_all(&vec![0; WIDE as usize]).unwrap();
        drop(reader);
        widen_pipe(File::open("/dev/null").unwrap());
    }
}
