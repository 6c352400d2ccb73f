//! The user's terminal: unbuffered key input, and its size.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use crate::TerminalBackup;

/// A terminal in unbuffered mode without echo, until dropped. ^C still sends SIGINT.
#[derive(Debug)]
pub struct KeyInput {
    fd: OwnedFd,
    /// The modes that are restored when this value is dropped.
    before: libc::termios,
    /// Restores the terminal if the process ends because memory is exhausted.
    _backup: TerminalBackup,
}

impl KeyInput {
    /// Puts the terminal `input` into unbuffered mode without echo.
    ///
    /// # Errors
    /// `ENOTTY` if `input` is not a terminal; what fcntl(2) and tcsetattr(3) report.
    pub fn begin(input: &impl AsFd) -> io::Result<Self> {
        let fd = input.as_fd().try_clone_to_owned()?;
        // The text is what the backup writes to its output, the second `fd`, to restore the screen. Key input does not change the
        // screen, so the text is empty.
        let restoring_text = Vec::new();
        let backup = TerminalBackup::save(&fd, &fd, restoring_text)?;
        let mut modes = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the call writes no more than the structure passed to it.
        if unsafe { libc::tcgetattr(fd.as_raw_fd(), modes.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so the structure is filled in.
        let before = unsafe { modes.assume_init() };
        let mut unbuffered = before;
        unbuffered.c_lflag &= !(libc::ICANON | libc::ECHO);
        // Reads return at once, with no bytes if no key was pressed.
        unbuffered.c_cc[libc::VMIN] = 0;
        unbuffered.c_cc[libc::VTIME] = 0;
        let terminal = Self {
            fd,
            before,
            _backup: backup,
        };
        terminal.set(&unbuffered)?;
        Ok(terminal)
    }

    /// Returns the keys pressed since the last call, at most 64 bytes; none if no key was pressed or the
    /// terminal was closed.
    ///
    /// # Errors
    /// What read(2) reports.
    pub fn pressed(&self) -> io::Result<Vec<u8>> {
        let mut keys = vec![0; 64];
        let count = crate::counter::read_fd(self.fd.as_fd(), &mut keys)?;
        keys.truncate(count);
        Ok(keys)
    }

    fn set(&self, modes: &libc::termios) -> io::Result<()> {
        // SAFETY: the structure came from tcgetattr and is only read.
        match unsafe { libc::tcsetattr(self.fd.as_raw_fd(), libc::TCSANOW, modes) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for KeyInput {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for KeyInput {
    fn drop(&mut self) {
        // This fails only if the terminal was closed.
        let _ = self.set(&self.before);
    }
}

/// Rows and columns of the terminal `output`; `None` if it is not a terminal, or its size is
/// unknown.
#[must_use]
pub fn window_size(output: &impl AsFd) -> Option<(usize, usize)> {
    let mut size = libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let fd = output.as_fd().as_raw_fd();
    // SAFETY: the request writes one `winsize`, which outlives the call.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    let is_known = result == 0 && size.ws_row > 0 && size.ws_col > 0;
    is_known.then_some((size.ws_row.into(), size.ws_col.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_terminal_has_no_keys_and_no_window_size() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(KeyInput::begin(&file).is_err());
        assert_eq!(window_size(&file), None);
    }
}
