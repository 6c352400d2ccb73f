//! Taking over and restoring the terminal.

use std::io::{self, Write};
use std::mem::{self, ManuallyDrop};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::queue;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;

use crate::error::Error;
use crate::keys::TerminalInput;
use crate::session::Session;

/// The number of attempts to lock the output before the terminal is restored, and the pause after each: another thread may be
/// writing a frame.
const LOCK_ATTEMPTS: (u32, Duration) = (50, Duration::from_millis(10));

/// The terminal in raw mode on its alternate screen, until dropped.
pub struct Terminal {
    /// Never dropped: its drop shows the cursor, and would print an error after the terminal was restored.
    screen: ManuallyDrop<ratatui::Terminal<CrosstermBackend<Painter>>>,
    restorer: Restorer,
}

/// Restores the terminal, from any thread, once.
#[derive(Clone)]
pub struct Restorer {
    out: SharedOutput,
    is_done: Arc<AtomicBool>,
}

/// The output to the terminal; `None` after the terminal was restored.
type SharedOutput = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

impl Terminal {
    /// Takes over the terminal that `out` writes to; keys come from the process's terminal.
    ///
    /// # Errors
    ///
    /// [`Error::Terminal`]: there is no terminal, or it cannot be set up.
    pub fn enter(out: Box<dyn Write + Send>) -> Result<Self, Error> {
        let restorer = Restorer {
            out: Arc::new(Mutex::new(Some(out))),
            is_done: Arc::default(),
        };
        enable_raw_mode().map_err(Error::terminal("set up"))?;
        restorer.restore_on_panic();
        let mut painter = Painter {
            out: Arc::clone(&restorer.out),
            frame: Vec::new(),
        };
        let set_up = queue!(painter, EnterAlternateScreen, EnableMouseCapture)
            .and_then(|()| ratatui::Terminal::new(CrosstermBackend::new(painter)));
        match set_up {
            Ok(screen) => Ok(Self {
                screen: ManuallyDrop::new(screen),
                restorer,
            }),
            Err(error) => {
                restorer.restore();
                Err(Error::terminal("set up")(error))
            }
        }
    }

    /// Returns the escape sequences that end mouse capture, leave the alternate screen and show the cursor. They do not end raw
    /// mode.
    #[must_use]
    pub fn restoring_text() -> Vec<u8> {
        let mut text = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = queue!(text, DisableMouseCapture, LeaveAlternateScreen, Show);
        text
    }

    /// Returns a handle that restores the terminal.
    #[must_use]
    pub fn restorer(&self) -> Restorer {
        self.restorer.clone()
    }

    /// Runs a session on the terminal.
    ///
    /// # Errors
    ///
    /// Those of [`Session::run`].
    pub fn run<M>(&mut self, session: &mut Session<M>) -> Result<(), Error> {
        session.run(&mut self.screen, &mut TerminalInput)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restorer.restore();
    }
}

impl Restorer {
    /// Restores the terminal. Waits for a frame that is being written, with a time limit: a terminal that blocks output keeps the
    /// alternate screen, but leaves raw mode.
    pub fn restore(&self) {
        if self.is_done.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(mut shared) = self.lock()
            && let Some(mut out) = shared.take()
        {
            // An error cannot be reported.
            let _ = out.write_all(&Terminal::restoring_text());
            let _ = out.flush();
        }
        let _ = disable_raw_mode();
    }

    /// Locks the output; `None` if another thread keeps it locked.
    fn lock(&self) -> Option<MutexGuard<'_, Option<Box<dyn Write + Send>>>> {
        let (attempts, pause) = LOCK_ATTEMPTS;
        for _ in 0..attempts {
            match self.out.try_lock() {
                Ok(shared) => return Some(shared),
                Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
            }
        }
        None
    }

    /// Installs a panic hook that restores the terminal before the panic message is printed.
    fn restore_on_panic(&self) {
        let restorer = self.clone();
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restorer.restore();
            previous(info);
        }));
    }
}

/// Buffers a frame until it is flushed, then writes it in one piece.
struct Painter {
    out: SharedOutput,
    frame: Vec<u8>,
}

impl Write for Painter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = mem::take(&mut self.frame);
        let mut shared = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(out) = shared.as_mut() else {
            return Err(io::Error::other("it was already restored"));
        };
        out.write_all(&frame)?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes written to a terminal.
    #[derive(Clone, Default)]
    struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

    impl Write for WrittenBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("a buffer").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_panic_restores_the_terminal_and_stops_painting() {
        let written = WrittenBytes::default();
        let restorer = Restorer {
            out: Arc::new(Mutex::new(Some(Box::new(written.clone())))),
            is_done: Arc::default(),
        };
        let mut painter = Painter {
            out: Arc::clone(&restorer.out),
            frame: Vec::new(),
        };
        painter.write_all(b"frame").expect("the frame is buffered");
        assert!(written.0.lock().expect("a buffer").is_empty());
        painter.flush().expect("the terminal is there");
        restorer.restore_on_panic();
        let worker = thread::spawn(|| panic::resume_unwind(Box::new("without the hook")));
        assert!(worker.join().is_err());
        assert!(painter.flush().is_ok());
        #[expect(clippy::panic, reason = "the hook is what is tested")]
        let worker = thread::spawn(|| panic!("with the hook"));
        assert!(worker.join().is_err());
        let bytes = written.0.lock().expect("a buffer").clone();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            text.starts_with("frame") && text.ends_with("\x1b[?1049l\x1b[?25h"),
            "{text:?}"
        );
        assert!(painter.flush().is_err());
        restorer.restore();
        assert_eq!(written.0.lock().expect("a buffer").len(), bytes.len());
    }
}
