//! The output of `inject`: a file that appears when it is complete, or a stream.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_rewrite::{CopyError, CopySummary};
use rperf_safefs::{Folder, FoundFile, PathOrigin, find_in_place};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Permissions of recordings: they contain addresses, command lines and paths.
const MODE: u32 = 0o600;

/// The output.
pub(super) struct InjectOutput<'c> {
    context: &'c Context,
    /// The file; `None` for stdout.
    path: Option<PathBuf>,
    /// The FIFO or device at this path, or the regular file behind a link such as `/dev/stdout`, which is written to instead of
    /// being replaced; otherwise `None`.
    in_place: Option<FoundFile>,
}

/// The result of writing.
pub(super) struct InjectSummary {
    /// Bytes of the output.
    pub(super) bytes: u64,
    /// The file; `None` for stdout.
    pub(super) path: Option<PathBuf>,
}

impl<'c> InjectOutput<'c> {
    /// Parses the option `output`.
    ///
    /// # Errors
    ///
    /// Status 129: stdout is a terminal. Status 255: the output is a FIFO or device that may not be used, a socket, or below a
    /// link of another user.
    pub(super) fn new(matches: &ArgMatches, context: &'c Context) -> Result<Self, CliError> {
        let path = matches.get_one::<String>("output").map(PathBuf::from);
        let path = path.filter(|path| path != Path::new("-"));
        let Some(path) = path else {
            if context.output.is_terminal() {
                let message = "inject: stdout is a terminal, and recordings are binary";
                return Err(CliError::usage(message).hint("name a file with -o, or use a pipe"));
            }
            return Ok(Self {
                context,
                path: None,
                in_place: None,
            });
        };
        let in_place =
            find_in_place(&path, PathOrigin::Given).map_err(|error| write_error(&path, &error))?;
        Ok(Self {
            context,
            path: Some(path),
            in_place,
        })
    }

    /// Whether the output must be written in pipe mode, without seeking: to stdout, or in place. Any other output is a regular
    /// file, which is written in pipe mode only if the input is in pipe mode.
    pub(super) fn is_stream(&self) -> bool {
        self.path.is_none() || self.in_place.is_some()
    }

    /// Refuses to replace the input.
    ///
    /// # Errors
    ///
    /// Status 255: input and output are the same file.
    pub(super) fn check_input(&self, input: &Path) -> Result<(), CliError> {
        let Some(path) = self.path.as_deref().filter(|_| !self.is_stream()) else {
            return Ok(());
        };
        let identity = |path: &Path| {
            let found = FoundFile::find(path).ok()?;
            Some((found.metadata().dev(), found.metadata().ino()))
        };
        match identity(path) {
            Some(output) if Some(output) == identity(input) => {
                let message = format!("inject: {} is input and output", path.display());
                Err(CliError::message(255, message).hint("write to another file (-o)"))
            }
            _ => Ok(()),
        }
    }

    /// Writes the output in pipe mode, to a stream or to a regular file. `copy` writes without seeking; `input` is the name of
    /// the input recording in messages.
    ///
    /// # Errors
    ///
    /// Status 255: errors of `copy`, or a damaged input; no regular file is created.
    pub(super) fn write_stream(
        &self,
        input: &str,
        copy: impl FnOnce(&mut dyn Write) -> Result<CopySummary, CopyError>,
    ) -> Result<InjectSummary, CliError> {
        let Some(path) = &self.path else {
            // From here on, stdout is binary.
            self.context.output.make_verbatim();
            let mut out = self.context.stdout();
            let summary = copy(&mut out);
            out.flush()?;
            return self.check_summary(input, summary);
        };
        let Some(found) = &self.in_place else {
            return self.write_file(input, |out| copy(out));
        };
        let file = found
            .for_writing()
            .map_err(|error| write_error(path, &error))?;
        let mut out = BufWriter::new(file);
        let summary = copy(&mut out);
        out.flush().map_err(|error| write_error(path, &error))?;
        self.check_summary(input, summary)
    }

    /// Writes a file with `copy`; the new file replaces an existing one only when it is complete.
    ///
    /// # Errors
    ///
    /// Status 255: errors of `copy`, or a damaged input; no file is created or replaced.
    pub(super) fn write_file(
        &self,
        input: &str,
        copy: impl FnOnce(&mut BufWriter<File>) -> Result<CopySummary, CopyError>,
    ) -> Result<InjectSummary, CliError> {
        // Not called for stdout: there is always a path.
        let path = self.path.as_deref().unwrap_or(Path::new("-"));
        // The error of the copy or the damage of the input. The closure below returns an I/O error, so that no file is created.
        let mut failed = None;
        let written = Folder::parent_of(path).and_then(|(folder, name)| {
            folder.write_atomic(name, MODE, |out| {
                self.check_summary(input, copy(out)).map_err(|error| {
                    failed = Some(error);
                    io::Error::other("incomplete")
                })
            })
        });
        match failed {
            Some(error) => Err(error),
            None => written.map_err(|error| write_error(path, &error)),
        }
    }

    fn check_summary(
        &self,
        input: &str,
        summary: Result<CopySummary, CopyError>,
    ) -> Result<InjectSummary, CliError> {
        let summary = summary.map_err(|error| self.copy_error(input, error))?;
        if let Some(damage) = summary.read_error {
            let error = CliError::message(255, format!("{input}: {damage}"));
            return Err(match self.is_stream() {
                true => error.hint("the output contains only the records before this damage"),
                false => error.hint("nothing is written; 'data check' lists all damage"),
            });
        }
        // The error that kept the feature sections from being written.
        if let Some(error) = summary.features_lost {
            return Err(self.copy_error(input, rperf_perfdata::WriteError::Header(error).into()));
        }
        Ok(InjectSummary {
            bytes: summary.bytes,
            path: self.path.clone(),
        })
    }

    fn copy_error(&self, input: &str, error: CopyError) -> CliError {
        let name = match (&error, &self.path) {
            (CopyError::Write(_), Some(path)) => path.display().to_string(),
            (CopyError::Write(_), None) => "stdout".to_owned(),
            _ => input.to_owned(),
        };
        CliError::failure(255, anyhow::Error::new(error).context(name))
    }
}

fn write_error(path: &Path, error: &io::Error) -> CliError {
    CliError::message(255, format!("failed to write {}: {error}", path.display()))
}
