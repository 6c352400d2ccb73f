//! The recording that a reading command is given: found, checked for its owner, mapped.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_perfdata::{Error, PerfData};
use rperf_sys::{MappedFile, effective_user};

use super::context::Context;
use super::error::CliError;
use super::options::flag;

/// The name of a recording where none is given.
pub(crate) const DEFAULT: &str = "perf.data";

/// A recording, mapped into memory.
pub(crate) struct Input {
    /// The file as the user named it, for messages.
    pub(crate) path: PathBuf,
    /// Its bytes; never empty.
    pub(crate) bytes: MappedFile,
}

impl Input {
    /// Opens what `-i` names, or perf.data. Uses the options `input` and `force` of the command.
    ///
    /// # Errors
    ///
    /// Status 255: no such file, no permission, another user's file without `-f`, an empty file, a pipe.
    pub(crate) fn open(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let given = matches.get_one::<String>("input").map(PathBuf::from);
        let path = given.clone().unwrap_or_else(|| PathBuf::from(DEFAULT));
        let shown = path.display();
        if given.as_deref() == Some(Path::new("-")) || (given.is_none() && stdin_is_pipe()) {
            return Err(pipe(context, "the standard input"));
        }
        let metadata = fs::metadata(&path)
            .map_err(|error| unreadable(context, &path, given.is_none(), &error))?;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return Err(pipe(context, &shown.to_string()));
        }
        if kind.is_dir() {
            return Err(CliError::message(
                255,
                format!("{shown} is a directory: recordings in that form are not read yet"),
            ));
        }
        let owner = metadata.uid();
        if owner != 0 && owner != effective_user() && flag(matches, "force") != Some(true) {
            return Err(CliError::message(
                255,
                format!("File {shown} not owned by current user or root (use -f to override)"),
            ));
        }
        if kind.is_file() && metadata.len() == 0 {
            return Err(CliError::message(
                255,
                format!("zero-sized data ({shown}), nothing to do!"),
            )
            .hint("the recording was ended before anything was written"));
        }
        let bytes = rperf_sys::map_file(&path)
            .map_err(|error| unreadable(context, &path, given.is_none(), &error))?;
        Ok(Self { path, bytes })
    }

    /// Reads header, events and features; tells of what is damaged and goes on where it can.
    ///
    /// # Errors
    ///
    /// Status 255: not a recording, or one whose header cannot be understood. The text says where and why.
    pub(crate) fn parse(&self, context: &Context) -> Result<PerfData<'_>, CliError> {
        let shown = self.path.display();
        let data = PerfData::parse(&self.bytes).map_err(|error| match error {
            Error::PipeMode => CliError::message(255, format!("{shown}: {}", Error::PipeMode))
                .hint(format!(
                    "record to a file: '{} record -o FILE'",
                    context.program
                )),
            cause => CliError::message(255, format!("incompatible file format ({shown}): {cause}")),
        })?;
        for finding in data.findings() {
            context.warn(format_args!("{shown}: {finding}"));
        }
        Ok(data)
    }
}

/// perf reads its standard input where that is a pipe and no file is named.
fn stdin_is_pipe() -> bool {
    fs::metadata("/proc/self/fd/0").is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Recordings in pipe form are to come.
fn pipe(context: &Context, what: &str) -> CliError {
    let program = context.program;
    CliError::message(
        255,
        format!("{what} is a pipe: reading a recording from a pipe is not supported yet"),
    )
    .hint(format!(
        "write it to a file, '{program} record -o FILE', and read that with -i FILE"
    ))
}

fn unreadable(context: &Context, path: &Path, default: bool, error: &io::Error) -> CliError {
    let cause = error.to_string();
    let cause = cause.split(" (os error").next().unwrap_or_default();
    let program = context.program;
    let advice = if default {
        format!("  (try '{program} record' first)")
    } else {
        String::new()
    };
    CliError::message(
        255,
        format!("failed to open {}: {cause}{advice}", path.display()),
    )
}
