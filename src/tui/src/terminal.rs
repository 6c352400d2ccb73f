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
use crate::keys::TerminalKeys;
use crate::session::Session;

/// How often, and at which interval, locking the terminal is tried before restoring it while another thread writes to it.
const LOCK_RETRIES: (u32, Duration) = (50, Duration::from_millis(10));

/// The terminal in raw mode on its alternate screen, until dropped.
pub struct Terminal {
    /// Never dropped: it would print an error if the terminal was already restored.
    screen: ManuallyDrop<ratatui::Terminal<CrosstermBackend<Painter>>>,
    restorer: Restorer,
}

/// Restores the terminal, from any thread, once.
#[derive(Clone)]
pub struct Restorer {
    handle: SharedTerminal,
    is_done: Arc<AtomicBool>,
}

/// The terminal; `None` after it was restored.
type SharedTerminal = Arc<Mutex<Option<Box<dyn Write + Send>>>>;

impl Terminal {
    /// Takes over the terminal that `out` writes to; keys come from the process's terminal.
    ///
    /// # Errors
    ///
    /// [`Error::Terminal`]: there is no terminal, or it cannot be set up.
    pub fn enter(out: Box<dyn Write + Send>) -> Result<Self, Error> {
        let restorer = Restorer {
            handle: Arc::new(Mutex::new(Some(out))),
            is_done: Arc::default(),
        };
        enable_raw_mode().map_err(Error::terminal("set up"))?;
        restorer.restore_on_panic();
        let mut painter = Painter {
            handle: Arc::clone(&restorer.handle),
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

    /// Returns the escape sequences that restore the screen, without the terminal modes.
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
        session.run(&mut self.screen, &mut TerminalKeys)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restorer.restore();
    }
}

impl Restorer {
    /// Restores the terminal. Waits for a frame that is being written, with a time limit: a blocked terminal keeps its screen,
    /// but its modes are restored.
    pub fn restore(&self) {
        if self.is_done.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(mut handle) = self.lock()
            && let Some(mut out) = handle.take()
        {
            // An error cannot be reported.
            let _ = out.write_all(&Terminal::restoring_text());
            let _ = out.flush();
        }
        let _ = disable_raw_mode();
    }

    fn lock(&self) -> Option<MutexGuard<'_, Option<Box<dyn Write + Send>>>> {
        let (times, pause) = LOCK_RETRIES;
        for _ in 0..times {
            match self.handle.try_lock() {
                Ok(handle) => return Some(handle),
                Err(TryLockError::Poisoned(handle)) => return Some(handle.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(pause),
            }
        }
        None
    }

    /// Restores the terminal before a panic message is printed.
    fn restore_on_panic(&self) {
        let restorer = self.clone();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restorer.restore();
            before(info);
        }));
    }
}

/// Buffers a frame and writes it at once.
struct Painter {
    handle: SharedTerminal,
    frame: Vec<u8>,
}

impl Write for Painter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let frame = mem::take(&mut self.frame);
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(out) = handle.as_mut() else {
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
            handle: Arc::new(Mutex::new(Some(Box::new(written.clone())))),
            is_done: Arc::default(),
        };
        let mut painter = Painter {
            handle: Arc::clone(&restorer.handle),
            frame: Vec::new(),
        };
        painter.write_all(b"frame").expect("it is gathered");
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
