//! Pipes.

use std::os::fd::{AsFd, AsRawFd as _};

/// What an ordinary user may have (`/proc/sys/fs/pipe-max-size`), in bytes.
const WIDE: i32 = 1 << 20;

/// Lets a pipe hold a megabyte instead of 64 KiB, so that writer and reader need not take turns (`F_SETPIPE_SZ`, fcntl(2)). What
/// is no pipe, or may not be wider, stays as it is.
pub fn widen_pipe(pipe: impl AsFd) {
    // SAFETY: the descriptor is open as long as it is borrowed; the request takes a number.
    let _ = unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, WIDE) };
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Write as _};

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
