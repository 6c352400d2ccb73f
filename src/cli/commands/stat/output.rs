//! Where tables go: the standard error, a file, or an open descriptor.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use clap::ArgMatches;
use rperf_safefs::{Writing, open_output};
use rperf_sys::{duplicate, unix_time, utc_offset};
use rperf_view::stat::write_started;
use rperf_view::terminal::escaped;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::options::flag;
use crate::cli::output::{CLEAR, Output};

/// perf's exit statuses for files and descriptors that can't be opened.
const NO_FILE: u8 = 255;
const NO_DESCRIPTOR: u8 = 234;

/// Where tables go.
pub(super) enum Sink {
    /// The standard error.
    Stderr,
    /// `-o` and `--log-fd`.
    File(File),
    /// Nowhere (`--quiet`).
    Nothing,
}

impl Sink {
    /// Opens what the options name, and dates it. `path` is the file, where `-o` names that of the table.
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
                return Err(CliError::usage(
                    "--append needs -o with the file to append to",
                ));
            }
            (Some(path), None) => Self::file(path, append)?,
            (None, Some(number)) => {
                let failed = |error: io::Error| {
                    let cause = reason(&error);
                    CliError::message(NO_DESCRIPTOR, format!("Failed opening logfd: {cause}"))
                };
                let number = i32::try_from(*number);
                let number = number.map_err(|_| CliError::usage("--log-fd: no such descriptor"))?;
                duplicate(number).map_err(failed)?
            }
            (None, None) => {
                return Ok(match context.output.is_quiet() {
                    true => Self::Nothing,
                    false => Self::Stderr,
                });
            }
        };
        let mut sink = Self::File(file);
        if path.is_some() {
            let now = unix_time().cast_signed();
            let mut line = Vec::new();
            write_started(&mut line, now + utc_offset(now))?;
            sink.write(&line)?;
        }
        Ok(sink)
    }

    fn file(path: &str, append: bool) -> Result<File, CliError> {
        let writing = match append {
            true => Writing::Append,
            false => Writing::Truncate,
        };
        let opened = open_output(Path::new(path), writing);
        opened.map_err(|error| {
            let cause = reason(&error);
            CliError::message(
                NO_FILE,
                format!("failed to create output file {path}: {cause}"),
            )
        })
    }

    /// Writes one table in one piece.
    pub(super) fn write(&mut self, text: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stderr => Output::error(&String::from_utf8_lossy(text)),
            Self::File(file) => write_file(file, "", text)?,
            Self::Nothing => {}
        }
        Ok(())
    }

    /// The same on a cleared screen.
    pub(super) fn write_screen(&mut self, text: &[u8]) -> Result<(), CliError> {
        match self {
            Self::Stderr => Output::error_screen(&String::from_utf8_lossy(text)),
            Self::File(file) => write_file(file, CLEAR, text)?,
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Whether nobody reads.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

/// Writes a table behind a control sequence to a file, which may be a terminal.
fn write_file(file: &mut File, control: &str, text: &[u8]) -> io::Result<()> {
    let shown = match file.is_terminal() {
        true => escaped(&String::from_utf8_lossy(text)).into_owned().into(),
        false => text.to_vec(),
    };
    file.write_all(&[control.as_bytes(), &shown].concat())
}
