//! The recording that a reading command is given: found, checked for its owner, brought into memory.

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches};
use rperf_perfdata::PerfData;
use rperf_safefs::{Folder, Opened as Found, is_users};

use super::context::Context;
use super::error::CliError;
use super::options::{flag, switch, value};
use super::spool::Bytes;
use super::stream::{Pipe, Stream};
use super::unpacked::{HEADER, Part, Unpacked};

/// The name of a recording where none is given.
pub(crate) const DEFAULT: &str = "perf.data";

/// The name of the standard input.
const STDIN: &str = "-";

/// The option that names the recording.
pub(crate) fn option() -> Arg {
    value("input", "file")
        .short('i')
        .help("the recording to read (default: perf.data)")
}

/// The option that lets it belong to anybody.
pub(crate) fn force() -> Arg {
    switch("force")
        .short('f')
        .help("read the file whoever owns it")
}

/// A recording in memory.
pub(crate) struct Input {
    /// The file as the user named it, for messages.
    pub(crate) path: PathBuf,
    /// When the file was last changed, in seconds since 1970.
    pub(crate) changed: i64,
    /// Its bytes; never empty.
    pub(crate) bytes: Bytes,
    /// The other files of a directory.
    parts: Vec<Part>,
    /// Its records, where they do not stand in `bytes` as they are.
    unpacked: OnceCell<Unpacked>,
}

/// A recording that has an end, or one that is still being written.
pub(crate) enum Opened {
    /// In memory.
    Whole(Input),
    /// Records of pipe mode, as they come.
    Stream(Stream),
}

impl Input {
    /// A recording of one file.
    pub(super) fn new(path: PathBuf, changed: i64, bytes: Bytes) -> Self {
        Self {
            path,
            changed,
            bytes,
            parts: Vec::new(),
            unpacked: OnceCell::new(),
        }
    }

    /// Opens what `-i` names, or perf.data. Uses the options `input` and `force` of the command. A pipe
    /// is read to its end first.
    ///
    /// # Errors
    ///
    /// Status 255: no such file, no permission, another user's file without `-f`, an empty file.
    pub(crate) fn open(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        Opened::open(matches, context)?.whole(context)
    }

    /// Reads header, events and features; tells of what is damaged and goes on where it can.
    ///
    /// # Errors
    ///
    /// Status 255: not a recording, or one whose header cannot be understood. The text says where and why.
    pub(crate) fn parse(&self, context: &Context) -> Result<PerfData<'_>, CliError> {
        let data = self.read(context)?;
        self.warn_of_damage(&data, context);
        Ok(data)
    }

    /// Tells of what is damaged, as [`Input::parse`] does.
    pub(crate) fn warn_of_damage(&self, data: &PerfData<'_>, context: &Context) {
        for finding in data.findings() {
            context.warn(format_args!("{}: {finding}", self.path.display()));
        }
    }

    /// The same without a word of what is damaged.
    ///
    /// # Errors
    ///
    /// Those of [`Input::parse`].
    pub(crate) fn read(&self, context: &Context) -> Result<PerfData<'_>, CliError> {
        let data = PerfData::parse(&self.bytes).map_err(|cause| foreign(&self.path, &cause))?;
        if self.parts.is_empty() && !data.is_compressed() {
            return Ok(data);
        }
        let unpacked = match self.unpacked.get() {
            Some(unpacked) => unpacked,
            None => {
                let fresh = Unpacked::new(&data, &self.parts, context)?;
                self.unpacked.get_or_init(|| fresh)
            }
        };
        Ok(data.with_records(&unpacked.records, unpacked.end.clone()))
    }
}

impl Opened {
    /// All of it: a pipe is read to its end first.
    ///
    /// # Errors
    ///
    /// What reading the pipe fails with.
    pub(crate) fn whole(self, context: &Context) -> Result<Input, CliError> {
        match self {
            Self::Whole(input) => Ok(input),
            Self::Stream(stream) => stream.spool(context),
        }
    }

    /// The same as [`Input::open`], but what comes through a pipe in pipe mode is left to be read.
    ///
    /// # Errors
    ///
    /// Those of [`Input::open`]; for a pipe also that it does not begin as a recording.
    pub(crate) fn open(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let given = matches.get_one::<String>("input").map(PathBuf::from);
        Self::named(given, flag(matches, "force") == Some(true), context)
    }

    /// The same for the file of this name, whoever owns it where `force` says so.
    ///
    /// # Errors
    ///
    /// Those of [`Opened::open`].
    pub(crate) fn named(
        given: Option<PathBuf>,
        force: bool,
        context: &Context,
    ) -> Result<Self, CliError> {
        let default = given.is_none();
        if given.as_deref() == Some(Path::new(STDIN)) || (default && stdin_is_pipe()) {
            let (path, input) = (STDIN.into(), Pipe::stdin());
            return input
                .and_then(|input| Stream::begin(path, input))
                .map_err(|error| unreadable(context, Path::new(STDIN), false, &error))?
                .open(context);
        }
        let path = given.unwrap_or_else(|| PathBuf::from(DEFAULT));
        let failed = |error: &io::Error| unreadable(context, &path, default, error);
        let mut found = Found::find(&path).map_err(|error| failed(&error))?;
        let directory = match found.metadata().is_dir() {
            true => Some(Folder::open(&path).map_err(|error| failed(&error))?),
            false => None,
        };
        if let Some(directory) = &directory {
            let header = directory.find(HEADER.as_ref());
            found = header.map_err(|error| no_header(&path, &error))?;
        }
        check(&path, found.metadata(), force)?;
        if found.is_fifo() {
            let input = found.as_it_is().map(Pipe::new);
            return input
                .and_then(|input| Stream::begin(path.clone(), input))
                .map_err(|error| failed(&error))?
                .open(context);
        }
        let bytes = found.for_reading().and_then(|file| rperf_sys::map(&file));
        let bytes = bytes.map_err(|error| failed(&error))?;
        let parts = match &directory {
            Some(directory) => {
                Part::of_directory(directory, |metadata| check(&path, metadata, force))?
            }
            None => Vec::new(),
        };
        let input = Input::new(path, found.metadata().mtime(), Bytes::Mapped(bytes));
        Ok(Self::Whole(Input { parts, ..input }))
    }
}

/// Refuses what is no recording, or not the user's.
fn check(path: &Path, metadata: &fs::Metadata, force: bool) -> Result<(), CliError> {
    let shown = path.display();
    let kind = metadata.file_type();
    let owner = metadata.uid();
    if !is_users(owner) && !force {
        return Err(CliError::message(
            255,
            format!("File {shown} not owned by current user or root (use -f to override)"),
        ));
    }
    if kind.is_file() && metadata.len() == 0 {
        let message = format!("zero-sized data ({shown}), nothing to do!");
        return Err(CliError::message(255, message)
            .hint("the recording was ended before anything was written"));
    }
    Ok(())
}

fn no_header(path: &Path, error: &io::Error) -> CliError {
    let cause = cause(error);
    let shown = path.display();
    let message = format!("{shown} is a directory: {shown}/{HEADER}: {cause}");
    CliError::message(255, message)
}

/// What the system says, without the number.
fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// What is said of a file that is no recording, or a damaged one.
pub(crate) fn foreign(path: &Path, cause: &rperf_perfdata::Error) -> CliError {
    let shown = path.display();
    CliError::message(255, format!("incompatible file format ({shown}): {cause}"))
}

/// perf reads its standard input where that is a pipe and no file is named.
fn stdin_is_pipe() -> bool {
    fs::metadata("/proc/self/fd/0").is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn unreadable(context: &Context, path: &Path, default: bool, error: &io::Error) -> CliError {
    let cause = cause(error);
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
