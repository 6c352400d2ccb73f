//! The process's two streams: one locked, buffered stdout and stderr line by line.
//!
//! Data goes to [`Output::stdout`], everything said about it to [`Output::note`] and [`Output::warn`]. A reader that
//! closes the pipe is noticed here, once: commands return the write error like any other and `cli::main` ends silently.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rperf_sys::{widen_pipe, window_size};

/// Bytes gathered before a write to stdout.
const BUFFER: usize = 64 << 10;

/// What was to be said on stderr while a browser has the terminal; None while nothing has.
static HELD: Mutex<Option<String>> = Mutex::new(None);

type Sink = BufWriter<Box<dyn Write + Send>>;

/// The streams, shared by reference; every method locks for as long as it writes.
pub(crate) struct Output {
    stdout: Mutex<Sink>,
    terminal: bool,
    closed: AtomicBool,
    quiet: AtomicBool,
    redirected: Arc<AtomicBool>,
}

impl Output {
    /// The process's own stdout and stderr.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stdout")]
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        widen_pipe(&stdout);
        // A duplicate of the descriptor skips the line buffer of `io::Stdout`, which would flush at every newline.
        let sink: Box<dyn Write + Send> = match stdout.as_fd().try_clone_to_owned() {
            Ok(fd) => Box::new(File::from(fd)),
            Err(_) => Box::new(stdout),
        };
        Self {
            stdout: Mutex::new(BufWriter::with_capacity(BUFFER, sink)),
            terminal,
            closed: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            redirected: Arc::default(),
        }
    }

    /// A terminal's stdout for a browser, which writes whole frames itself.
    ///
    /// # Errors
    ///
    /// What dup(2) reports.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stdout")]
    pub(crate) fn terminal(&self) -> io::Result<File> {
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    }

    /// Whether stdout is a terminal (a pager does not change the answer).
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Rows and columns of the terminal at stdout, which may change at any time.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks for stdout"
    )]
    pub(crate) fn window_size(&self) -> Option<(usize, usize)> {
        self.terminal.then(|| window_size(&io::stdout())).flatten()
    }

    /// Stdout, locked until the returned writer is dropped.
    pub(crate) fn stdout(&self) -> Stdout<'_> {
        Stdout {
            sink: self.lock(),
            closed: &self.closed,
        }
    }

    /// Tells, also later, whether stdout was sent elsewhere.
    pub(crate) fn redirected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.redirected)
    }

    /// Sends stdout elsewhere from now on: to a pager.
    pub(crate) fn redirect(&self, sink: Box<dyn Write + Send>) {
        self.redirected.store(true, Ordering::Relaxed);
        *self.lock() = BufWriter::with_capacity(BUFFER, sink);
    }

    /// Writes out what is buffered and lets go of the sink, so that a pager sees the end of its input.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let flushed = self.stdout().flush();
        self.redirect(Box::new(io::sink()));
        flushed
    }

    /// Whether the reader of stdout has gone away.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// `-q`: [`note`](Self::note) and [`warn`](Self::warn) say nothing from now on. Errors are always printed.
    pub(crate) fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    /// Whether `-q` was given.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Whether stderr is a terminal, so that a line of it may be written over.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks for stderr"
    )]
    pub(crate) fn shows_errors_on_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// One line on stderr, unless `-q`.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        if !self.quiet.load(Ordering::Relaxed) {
            Self::error(&format!("{line}\n"));
        }
    }

    /// One line on stderr that begins with `Warning: `, unless `-q`.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        self.note(format_args!("Warning: {line}"));
    }

    /// Keeps all that is said on stderr until [`Output::release`]: a browser has the terminal now. Who shows progress there
    /// stops.
    pub(crate) fn hold(&self) {
        self.redirected.store(true, Ordering::Relaxed);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default();
    }

    /// Says what was kept.
    pub(crate) fn release(&self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.redirected.store(false, Ordering::Relaxed);
        Self::error(&held.unwrap_or_default());
    }

    /// Text for stderr that is printed in any case: the lines of an error.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stderr")]
    pub(crate) fn error(text: &str) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.as_mut() {
            return held.push_str(text);
        }
        // Nobody is left to tell when stderr itself fails.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Sink> {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stdout while it is locked.
pub(crate) struct Stdout<'a> {
    sink: MutexGuard<'a, Sink>,
    closed: &'a AtomicBool,
}

impl Stdout<'_> {
    fn seen<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.sink.write(bytes);
        self.seen(result)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let result = self.sink.write_all(bytes);
        self.seen(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.sink.flush();
        self.seen(result)
    }
}
