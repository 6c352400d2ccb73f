//! The output of tables: stderr, a file, an open descriptor, or none.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use clap::ArgMatches;
use rperf_safefs::{WriteMode, open_output};
use rperf_sys::{duplicate_descriptor, unix_time, utc_offset};
use rperf_view::stat::write_started;
use rperf_view::terminal::escaped;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::options::{flag, given_value};
use crate::cli::output::{CLEAR, OutputStreams};

/// perf's exit statuses if a file (-1) or a descriptor (-EINVAL) can't be opened.
const FILE_STATUS: u8 = 255;
const DESCRIPTOR_STATUS: u8 = 234;

/// The output of tables.
pub(super) enum StatOutput {
    Stderr,
    /// `-o` and `--log-fd`.
    File(File),
    /// No output (`--quiet` without `-o` and `--log-fd`).
    Nothing,
}

impl StatOutput {
    /// Opens the requested output, and writes the date to a file of `-o`, except before JSON. `path` is the value of `-o`; `None`
    /// for `stat record`, where `-o` names the recording.
    pub(super) fn open(
        path: Option<&String>,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let append = flag(matches, "append") == Some(true);
        let file = match (path, matches.get_one::<u64>("log-fd")) {
            (Some(_), Some(_)) => {
                return Err(CliError::usage("cannot use both --output and --log-fd"));
            }
            (None, _) if append => {
                return Err(CliError::usage("--append needs -o FILE"));
            }
            (Some(path), None) => Self::file(path, append)?,
            (None, Some(number)) => {
                let failed = |error: io::Error| {
                    let cause = reason(&error);
                    CliError::message(DESCRIPTOR_STATUS, format!("Failed opening logfd: {cause}"))
                };
                let number = i32::try_from(*number);
                let number =
                    number.map_err(|_| CliError::usage("--log-fd: the descriptor is not open"))?;
                duplicate_descriptor(number).map_err(failed)?
            }
            (None, None) => {
                return Ok(match context.output.is_quiet() {
                    true => Self::Nothing,
                    false => Self::Stderr,
                });
            }
        };
        let mut sink = Self::File(file);
        // JSON has no comments.
        if path.is_some() && given_value(matches, "json-output") != Some(&true) {
            let now = unix_time().cast_signed();
            let mut line = Vec::new();
            write_started(&mut line, now + utc_offset(now))?;
            sink.write(&line)?;
        }
        Ok(sink)
    }

    fn file(path: &str, append: bool) -> Result<File, CliError> {
        let writing = match append {
            true => WriteMode::Append,
            false => WriteMode::Truncate,
        };
        let opened = open_output(Path::new(path), writing);
        opened.map_err(|error| {
            let cause = reason(&error);
            CliError::message(
                FILE_STATUS,
                format!("failed to create output file {path}: {cause}"),
            )
        })
    }

    /// Writes a table.
    pub(super) fn write(&mut self, text: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stderr => OutputStreams::error(&String::from_utf8_lossy(text)),
            Self::File(file) => write_file(file, "", text)?,
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Writes a table on a cleared screen. As in perf, the control sequence is written even if the output is not a terminal.
    pub(super) fn write_screen(&mut self, text: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stderr => OutputStreams::error_screen(&String::from_utf8_lossy(text)),
            Self::File(file) => write_file(file, CLEAR, text)?,
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Whether there is no output.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Writes a control sequence, which may be empty, and a table to a file; if the file is a terminal, control characters in the
/// table are escaped.
fn write_file(file: &mut File, control: &str, text: &[u8]) -> io::Result<()> {
    let output = match file.is_terminal() {
        true => escaped(&String::from_utf8_lossy(text)).into_owned().into(),
        false => text.to_vec(),
    };
    file.write_all(&[control.as_bytes(), &output].concat())
}
