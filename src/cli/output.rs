//! The process's two streams: one locked, buffered stdout and stderr line by line.
//!
//! Data goes to [`Output::stdout`], everything said about it to [`Output::note`] and [`Output::warn`]. A reader that
//! closes the pipe is noticed here, once: commands return the write error like any other and `cli::main` ends silently.
//!
//! Where a stream leads to a terminal, through a pager or not, control characters of names are shown and never sent
//! ([`rperf_view::terminal`]). Control sequences of our own on stdout begin with [`Output::csi`], those on stderr are
//! written in this file alone. A name cannot begin a line of a message, on any stderr.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rperf_sys::{widen_pipe, window_size};
use rperf_view::terminal::{Csi, Filter, escaped, one_line};

use super::name_bytes::NameBytes;

/// Bytes gathered before a write to stdout.
const BUFFER: usize = 64 << 10;

/// Puts the cursor to the start of an empty line (ECMA-48: EL).
const ERASE: &str = "\r\x1b[K";
/// Puts the cursor into the first column of the first line and clears the screen (ECMA-48: CUP, ED).
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// What was to be said on stderr while a browser has the terminal; None while nothing has.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Whether stdout gets bytes as they are.
static VERBATIM: AtomicBool = AtomicBool::new(false);

type Sink = BufWriter<Box<dyn Write + Send>>;

/// The streams, shared by reference; every method locks for as long as it writes.
pub(crate) struct Output {
    stdout: Mutex<Sink>,
    terminal: bool,
    csi: Csi,
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
        let csi = match terminal {
            true => Csi::marked(),
            false => Csi::PLAIN,
        };
        Self {
            stdout: Mutex::new(BufWriter::with_capacity(
                BUFFER,
                filtered(sink, terminal, csi),
            )),
            terminal,
            csi,
            closed: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            redirected: Arc::default(),
        }
    }

    /// A terminal's stdout for a browser, which writes whole frames itself and escapes what is in them.
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

    /// What control sequences on stdout begin with: where it is a terminal, a mark that no name contains.
    pub(crate) fn csi(&self) -> Csi {
        self.csi
    }

    /// Stdout, locked until the returned writer is dropped.
    pub(crate) fn stdout(&self) -> Stdout<'_> {
        Stdout {
            csi: self.csi,
            sink: self.lock(),
            closed: &self.closed,
        }
    }

    /// From now on stdout gets a file of some format, whose bytes are no text of ours.
    pub(crate) fn make_verbatim(&self) {
        VERBATIM.store(true, Ordering::Relaxed);
    }

    /// Tells, also later, whether stdout was sent elsewhere.
    pub(crate) fn redirected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.redirected)
    }

    /// Sends stdout elsewhere from now on: to a pager.
    pub(crate) fn redirect(&self, sink: Box<dyn Write + Send>) {
        self.redirected.store(true, Ordering::Relaxed);
        *self.lock() = BufWriter::with_capacity(BUFFER, filtered(sink, self.terminal, self.csi));
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

    /// What a last message on stderr begins with, so that no line of progress stays before it.
    pub(crate) fn error_start() -> &'static str {
        match Self::shows_errors_on_terminal() {
            true => ERASE,
            false => "",
        }
    }

    /// One line on stderr, unless `-q`. Newlines in it come out of names, and are escaped.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        if !self.quiet.load(Ordering::Relaxed) {
            Self::error(&format!("{}\n", one_line(&line.to_string())));
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
    pub(crate) fn error(text: &str) {
        Self::write_error("", text);
    }

    /// The same on a screen that was cleared.
    pub(crate) fn error_screen(text: &str) {
        Self::write_error(CLEAR, text);
    }

    /// A line on the terminal at stderr that takes the place of the one before, or nothing in its place. While a browser has the
    /// terminal none is shown.
    pub(crate) fn status(line: &str) {
        if HELD
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
        {
            Self::write_error(ERASE, &one_line(line));
        }
    }

    /// Text for stderr behind a control sequence.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stderr")]
    fn write_error(control: &str, text: &str) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.as_mut() {
            return held.push_str(text);
        }
        let text = match Self::shows_errors_on_terminal() {
            true => escaped(text),
            false => text.into(),
        };
        // Nobody is left to tell when stderr itself fails.
        let _ = io::stderr()
            .lock()
            .write_all(format!("{control}{text}").as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Sink> {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What writes text to `sink`, which leads to a terminal or does not; control sequences of `csi` pass.
fn filtered(sink: Box<dyn Write + Send>, terminal: bool, csi: Csi) -> Box<dyn Write + Send> {
    match terminal {
        true => Box::new(NameBytes::new(Filter::new(sink, csi))),
        false => Box::new(NameBytes::new(sink).unless(&VERBATIM)),
    }
}

/// What writes text to a file that the user names, which can be a terminal, too.
pub(crate) fn text_file(file: File) -> Box<dyn Write + Send> {
    let terminal = file.is_terminal();
    match terminal {
        true => filtered(Box::new(file), terminal, Csi::PLAIN),
        false => Box::new(file),
    }
}

/// Stdout while it is locked.
pub(crate) struct Stdout<'a> {
    csi: Csi,
    sink: MutexGuard<'a, Sink>,
    closed: &'a AtomicBool,
}

impl Stdout<'_> {
    /// Clears the terminal.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let csi = self.csi;
        write!(self, "{csi}H{csi}2J")
    }

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
