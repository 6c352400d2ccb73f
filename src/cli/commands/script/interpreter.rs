//! Starts the interpreter of a script as a child process, and sends it blocks of values through a pipe. The interpreter runs the
//! shim: a program in the script's language that loads the script and calls its functions.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rperf_safefs::Folder;
use rperf_scripting::{PERL_SHIM, PYTHON_SHIM, ScriptFunctions, ScriptLanguage};
use rperf_sys::{Signals, keep_open_in_children, widen_pipe};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::external;

/// The environment variable that names the folder of perf's own programs and scripts.
pub(super) const EXEC_PATH: &str = "PERF_EXEC_PATH";
/// The folders in which distributions install perf's programs and scripts.
const INSTALL_FOLDERS: [&str; 2] = ["/usr/libexec/perf-core", "/usr/lib/perf-core"];

/// A running interpreter.
pub(super) struct Interpreter {
    language: ScriptLanguage,
    child: Child,
    /// `None` once the interpreter has closed its end.
    events: Option<PipeWriter>,
    answer: PipeReader,
    /// The blocked signals: if one is pending, no more blocks are sent, unless `ignores_signals`. The interpreter receives the
    /// signals, too, as the shim unblocks them.
    signals: Option<Signals>,
    ignores_signals: bool,
}

impl Interpreter {
    /// Starts `program` and sends `hello`, the first block. The program reads standard input if `has_input`. Must be called
    /// before threads are started, as it blocks signals.
    ///
    /// # Errors
    ///
    /// The pipes cannot be created. Status 255: the program cannot be started.
    pub(super) fn start(
        language: ScriptLanguage,
        program: &Path,
        hello: &[u8],
        has_input: bool,
        context: &Context,
    ) -> Result<Self, CliError> {
        // If signals cannot be blocked, the interpreter still ends at the end of the pipe.
        let signals = Signals::block(&[libc::SIGINT]).ok();
        let (for_child, events) = pipe()?;
        let (answer, from_child) = pipe()?;
        let mut command = Command::new(program);
        let (option, shim, hint) = match language {
            ScriptLanguage::Python => (
                "-c",
                PYTHON_SHIM,
                "install Python 3, or name an interpreter with --python PATH",
            ),
            ScriptLanguage::Perl => ("-e", PERL_SHIM, "install Perl 5"),
        };
        command.arg(option).arg(shim);
        for end in [for_child.as_raw_fd(), from_child.as_raw_fd()] {
            command.arg(end.to_string());
        }
        command.env(EXEC_PATH, exec_path(context));
        if !has_input {
            command.stdin(Stdio::null());
        }
        keep_open_in_children(&for_child)?;
        keep_open_in_children(&from_child)?;
        widen_pipe(&events);
        let child = command.spawn().map_err(|error| {
            let message = format!("{}: {error}", program.display());
            CliError::message(255, message).hint(hint)
        })?;
        // Closed here: otherwise, once the interpreter has ended, writes would not fail and reads would not return the end of the
        // file.
        drop((for_child, from_child));
        let mut interpreter = Self {
            language,
            child,
            events: Some(events),
            answer,
            signals,
            ignores_signals: false,
        };
        // Sent even if a signal has arrived: the interpreter answers only this block, and `functions` waits for the answer.
        interpreter.write_block(hello);
        Ok(interpreter)
    }

    /// Continues to send events after signals.
    pub(super) fn ignore_signals(&mut self) {
        self.ignores_signals = true;
    }

    /// Waits until the script is loaded, and returns its functions; `None` if the interpreter sends no text, for example because
    /// it has ended.
    ///
    /// # Errors
    ///
    /// Status 255: the answer is invalid.
    pub(super) fn functions(&mut self) -> Result<Option<ScriptFunctions>, CliError> {
        let mut line = Vec::new();
        // Only one line is read: the pipe may stay open after the answer, for example in a wrapper program that waits for the
        // interpreter.
        let _ = BufReader::new(&self.answer).read_until(b'\n', &mut line);
        if line.is_empty() {
            return Ok(None);
        }
        let invalid =
            |error: String| CliError::message(255, format!("answer of the script: {error}"));
        let text = std::str::from_utf8(&line).map_err(|error| invalid(error.to_string()))?;
        let functions = ScriptFunctions::parse(self.language, text);
        let functions = functions.map_err(|error| invalid(error.to_string()))?;
        Ok(Some(functions))
    }

    /// Sends a block; returns false if the interpreter has closed its end, or a signal has arrived that is not ignored.
    pub(super) fn send(&mut self, block: &[u8]) -> bool {
        let is_interrupted = self
            .signals
            .as_ref()
            .is_some_and(|signals| matches!(signals.next(), Ok(Some(_))));
        let is_stopped = is_interrupted && !self.ignores_signals;
        !is_stopped && self.write_block(block)
    }

    /// Writes a block and its length; returns false if the interpreter has closed its end.
    fn write_block(&mut self, block: &[u8]) -> bool {
        let Some(events) = self.events.as_mut() else {
            return false;
        };
        let length = u32::try_from(block.len()).unwrap_or(u32::MAX).to_le_bytes();
        let sent = events
            .write_all(&length)
            .and_then(|()| events.write_all(block));
        if sent.is_err() {
            self.events = None;
        }
        sent.is_ok()
    }

    /// Sends the end of the events and waits for the interpreter.
    ///
    /// # Errors
    ///
    /// The interpreter's exit status cannot be read.
    pub(super) fn finish(mut self) -> Result<ExitStatus, CliError> {
        if let Some(mut events) = self.events.take() {
            // A block of length 0 ends the events. An error means that the interpreter has ended; its exit status is returned
            // below.
            let _ = events.write_all(&0_u32.to_le_bytes());
        }
        let status = loop {
            match self.child.wait() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                status => break status?,
            }
        };
        Ok(match (status.code(), status.signal()) {
            (Some(0), _) => ExitStatus::Ok,
            (Some(code), _) => ExitStatus::Child(u8::try_from(code).unwrap_or(1)),
            (None, Some(signal)) => ExitStatus::Signal(signal),
            (None, None) => ExitStatus::Failure(255),
        })
    }
}

/// The folder of perf's own programs and scripts: that of `--exec-path` or [`EXEC_PATH`]. If neither is given, the first of
/// [`INSTALL_FOLDERS`] that exists; the first of them if none exists.
pub(super) fn exec_path(context: &Context) -> OsString {
    let given = external::directory(context);
    let installed = || {
        INSTALL_FOLDERS
            .iter()
            .map(PathBuf::from)
            .find(|path| Folder::open(path).is_ok())
    };
    let [first, ..] = INSTALL_FOLDERS;
    given
        .or_else(installed)
        .unwrap_or_else(|| first.into())
        .into()
}
