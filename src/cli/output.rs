//! The process's two streams: a buffered stdout, and stderr line by line.
//!
//! Data goes to [`OutputStreams::stdout`], messages to [`OutputStreams::note`] and [`OutputStreams::warn`]. A closed pipe is
//! detected here: commands return the write error like any other, and `cli::main` ends the process by SIGPIPE, without a message.
//!
//! If a stream leads to a terminal, directly or through a pager, control characters in names are escaped
//! ([`rperf_view::terminal`]). Our own control sequences on stdout start with [`OutputStreams::csi`]; those on stderr are defined
//! in this file only. In notes and warnings, newlines in names are always escaped.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rperf_sys::{widen_pipe, window_size};
use rperf_view::terminal::{Csi, TerminalFilter, escaped, one_line};

use super::error::without_error_numbers;
use super::name_bytes::NameBytes;
use super::shared::wrap::wrap_message;

/// Buffer size of stdout.
const BUFFER: usize = 64 << 10;

/// Moves the cursor to the start of the line and clears it (ECMA-48: EL).
const ERASE: &str = "\r\x1b[K";
/// Moves the cursor home and clears the screen (ECMA-48: CUP, ED).
pub(crate) const CLEAR: &str = "\x1b[H\x1b[2J";

/// Messages held back while a browser uses the terminal; `None` otherwise.
static HELD_MESSAGES: Mutex<Option<String>> = Mutex::new(None);

/// Whether stdout, unless it is a terminal, receives bytes unchanged ([`OutputStreams::make_verbatim`]).
static IS_STDOUT_VERBATIM: AtomicBool = AtomicBool::new(false);

type BufferedStream = BufWriter<Box<dyn Write + Send>>;

/// The streams, shared by reference; every method locks while it writes.
pub(crate) struct OutputStreams {
    stdout: Mutex<BufferedStream>,
    is_terminal: bool,
    csi: Csi,
    closed: AtomicBool,
    quiet: AtomicBool,
    /// Whether stdout leads to a pager or another sink, or a browser uses the terminal.
    redirected: Arc<AtomicBool>,
}

impl OutputStreams {
    /// Returns the process's stdout and stderr.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stdout")]
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        widen_pipe(&stdout);
        // A duplicate of the descriptor skips the line buffer of `io::Stdout`, which would flush at every newline.
        let sink: Box<dyn Write + Send> = match stdout.as_fd().try_clone_to_owned() {
            Ok(fd) => Box::new(File::from(fd)),
            Err(_) => Box::new(stdout),
        };
        let csi = match is_terminal {
            true => Csi::marked(),
            false => Csi::PLAIN,
        };
        Self {
            stdout: Mutex::new(BufWriter::with_capacity(
                BUFFER,
                filtered(sink, is_terminal, csi),
            )),
            is_terminal,
            csi,
            closed: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            redirected: Arc::default(),
        }
    }

    /// Returns stdout for a browser, which writes whole frames and escapes their content.
    ///
    /// # Errors
    ///
    /// Errors of dup(2).
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stdout")]
    pub(crate) fn terminal(&self) -> io::Result<File> {
        io::stdout().as_fd().try_clone_to_owned().map(File::from)
    }

    /// Whether stdout is a terminal (a pager does not change the answer).
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the rows and columns of the terminal at stdout, which may change at any time; `None` if stdout is no terminal.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks for stdout"
    )]
    pub(crate) fn window_size(&self) -> Option<(usize, usize)> {
        self.is_terminal
            .then(|| window_size(&io::stdout()))
            .flatten()
    }

    /// Returns the prefix of control sequences on stdout: on a terminal, a marker that no name can contain.
    pub(crate) fn csi(&self) -> Csi {
        self.csi
    }

    /// Returns a buffered writer to stdout. It locks stdout for each write only, so that any number of writers may exist at a
    /// time.
    pub(crate) fn stdout(&self) -> Stdout<'_> {
        Stdout(self)
    }

    /// Makes stdout binary: unless it is a terminal, bytes are written unchanged from now on.
    pub(crate) fn make_verbatim(&self) {
        IS_STDOUT_VERBATIM.store(true, Ordering::Relaxed);
    }

    /// Returns a flag that is set while stdout is redirected or a browser uses the terminal, so that no progress may be shown.
    pub(crate) fn redirected(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.redirected)
    }

    /// Redirects stdout to `sink`, such as a pager, from now on.
    pub(crate) fn redirect(&self, sink: Box<dyn Write + Send>) {
        self.redirected.store(true, Ordering::Relaxed);
        *self.lock() = BufWriter::with_capacity(BUFFER, filtered(sink, self.is_terminal, self.csi));
    }

    /// Flushes the buffer and closes the sink; later output is discarded. Thus a pager sees the end of its input.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let flushed = self.stdout().flush();
        self.redirect(Box::new(io::sink()));
        flushed
    }

    /// Whether the reader of stdout has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Sets whether `-q` was given. If so, [`note`](Self::note) and [`warn`](Self::warn) print nothing; errors are still printed.
    pub(crate) fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    /// Whether `-q` was given.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Whether stderr is a terminal, so that lines may be overwritten.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks for stderr"
    )]
    pub(crate) fn shows_errors_on_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// Returns a prefix that erases the progress line before a final message on stderr; empty if stderr is no terminal. Only for
    /// messages that are written without this file's functions, which would escape it.
    pub(crate) fn error_start() -> &'static str {
        match Self::shows_errors_on_terminal() {
            true => ERASE,
            false => "",
        }
    }

    /// Prints a line on stderr, unless `-q`. Newlines in `line` come from names, and are escaped. The standard library's
    /// ` (os error 2)` is removed. On a terminal, the line is wrapped.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        if !self.quiet.load(Ordering::Relaxed) {
            let line = without_error_numbers(&one_line(&line.to_string()));
            Self::error_lines(&format!("{line}\n"));
        }
    }

    /// Prints a line on stderr that starts with `Warning: `, unless `-q`.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        self.note(format_args!("Warning: {line}"));
    }

    /// Holds all messages for stderr until [`OutputStreams::release_messages`], while a browser uses the terminal. Progress lines
    /// are disabled.
    pub(crate) fn hold_messages(&self) {
        self.redirected.store(true, Ordering::Relaxed);
        let mut held = HELD_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        held.get_or_insert_default();
    }

    /// Ends [`OutputStreams::hold_messages`] and prints the held messages.
    pub(crate) fn release_messages(&self) {
        let held = HELD_MESSAGES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.redirected.store(false, Ordering::Relaxed);
        Self::error(&held.unwrap_or_default());
    }

    /// Prints text on stderr, even with `-q`.
    pub(crate) fn error(text: &str) {
        Self::write_error("", text);
    }

    /// Prints the lines of a message on stderr, even with `-q`. They are wrapped to the width of a terminal; a file or pipe gets
    /// them unchanged.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that asks for stderr"
    )]
    pub(crate) fn error_lines(text: &str) {
        match Self::shows_errors_on_terminal()
            .then(|| window_size(&io::stderr()))
            .flatten()
        {
            Some((_, width)) => {
                let lines = text.lines().map(|line| wrap_message(line, width));
                let lines = lines.map(|line| line + "\n");
                Self::error(&lines.collect::<String>());
            }
            None => Self::error(text),
        }
    }

    /// Returns a line for stdout, wrapped to the width of a terminal.
    pub(crate) fn wrapped(&self, line: &str) -> String {
        match self.window_size() {
            Some((_, width)) => wrap_message(line, width),
            None => line.to_owned(),
        }
    }

    /// Clears the screen and prints text on stderr, even with `-q`.
    pub(crate) fn error_screen(text: &str) {
        Self::write_error(CLEAR, text);
    }

    /// Shows a status line on the terminal at stderr, replacing the previous one; an empty `line` only erases the previous one.
    /// Does nothing while a browser uses the terminal. The caller has checked that stderr is a terminal.
    pub(crate) fn status(line: &str) {
        if HELD_MESSAGES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
        {
            Self::write_error(ERASE, &one_line(line));
        }
    }

    /// Writes a control sequence and text to stderr; holds the text while a browser uses the terminal.
    #[expect(clippy::disallowed_methods, reason = "the one place that opens stderr")]
    fn write_error(control: &str, text: &str) {
        let mut held = HELD_MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = held.as_mut() {
            return held.push_str(text);
        }
        let text = match Self::shows_errors_on_terminal() {
            true => escaped(text),
            false => text.into(),
        };
        // A failure of stderr itself cannot be reported.
        let _ = io::stderr()
            .lock()
            .write_all(format!("{control}{text}").as_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, BufferedStream> {
        self.stdout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a writer of text to `sink` that restores the bytes of names that are not UTF-8 ([`NameBytes`]). If `is_terminal`,
/// control characters are escaped, except in the sequences marked by `csi`; otherwise the bytes are unchanged once stdout is
/// verbatim ([`OutputStreams::make_verbatim`]).
fn filtered(sink: Box<dyn Write + Send>, is_terminal: bool, csi: Csi) -> Box<dyn Write + Send> {
    match is_terminal {
        true => Box::new(NameBytes::new(TerminalFilter::new(sink, csi))),
        false => Box::new(NameBytes::new(sink).unless(&IS_STDOUT_VERBATIM)),
    }
}

/// Returns a writer of text to a file named by the user. A terminal gets control characters escaped; any other file gets all
/// bytes unchanged.
pub(crate) fn text_file(file: File) -> Box<dyn Write + Send> {
    let is_terminal = file.is_terminal();
    match is_terminal {
        // `PLAIN` has no mark: all control sequences are escaped.
        true => filtered(Box::new(file), is_terminal, Csi::PLAIN),
        false => Box::new(file),
    }
}

/// A writer returned by [`OutputStreams::stdout`]; all writers share one buffer.
pub(crate) struct Stdout<'a>(&'a OutputStreams);

impl Stdout<'_> {
    /// Clears the terminal.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let csi = self.0.csi;
        write!(self, "{csi}H{csi}2J")
    }

    /// Returns `result`; if it is a broken pipe, sets the flag that the reader of stdout has closed it.
    fn note_closed<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.0.closed.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.0.lock().write(bytes);
        self.note_closed(result)
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let result = self.0.lock().write_all(bytes);
        self.note_closed(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.0.lock().flush();
        self.note_closed(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_writers_share_one_buffer() {
        let streams = OutputStreams::new();
        let shared: Arc<Mutex<Vec<u8>>> = Arc::default();
        streams.redirect(Box::new(SharedSink(Arc::clone(&shared))));
        let mut first = streams.stdout();
        let mut second = streams.stdout();
        first.write_all(b"one ").unwrap();
        second.write_all(b"two ").unwrap();
        first.write_all(b"three").unwrap();
        assert!(shared.lock().unwrap().is_empty(), "buffered");
        second.flush().unwrap();
        assert_eq!(*shared.lock().unwrap(), b"one two three");
    }

    struct SharedSink(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
