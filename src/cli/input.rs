//! The recording given to a reading command: located, checked for its owner, and loaded.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches};
use rperf_input::{DirectoryFile, HEADER_FILE_NAME, RecordingBytes, UnpackedRecords};
use rperf_perfdata::PerfData;
use rperf_safefs::{Folder, FoundFile, is_trusted_owner};

use super::context::Context;
use super::error::{CliError, without_error_numbers};
use super::jobs::{default_jobs, jobs};
use super::options::{flag, switch, value};
use super::stream::{PipeInput, RecordingStream};

/// The default name of a recording.
pub(crate) const DEFAULT: &str = "perf.data";

/// Maximum number of bytes searched for the first line of folded stacks.
const MAX_FIRST_LINE: u64 = 64 << 10;

/// The name of the standard input.
pub(crate) const STDIN: &str = "-";

/// The `-i` option.
pub(crate) fn option() -> Arg {
    value("input", "file")
        .short('i')
        .help("recording to read (default: perf.data)")
}

/// The `-f` option: ignore the owner.
pub(crate) fn force() -> Arg {
    switch("force")
        .short('f')
        .help("do not check the owner of the file")
}

/// Which recording a command reads.
pub(crate) struct InputName {
    /// The file of `-i`, if given.
    pub(crate) given: Option<PathBuf>,
    /// Whether stdin is read if it is a pipe and no file is named.
    pub(crate) may_be_stdin: bool,
    /// Whether files of other users are read.
    pub(crate) force: bool,
    /// The command that writes the recording, for the advice if perf.data cannot be opened.
    pub(crate) recorder: &'static str,
}

impl InputName {
    /// Reads the options `input` and `force` of a command.
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let given = matches.get_one::<String>("input").map(PathBuf::from);
        Self::of(given, flag(matches, "force") == Some(true))
    }

    /// Returns the input of a command that reads what the command `record` writes: the file `given`, or, if `None`, a pipe on
    /// stdin or perf.data.
    fn of(given: Option<PathBuf>, force: bool) -> Self {
        Self {
            given,
            may_be_stdin: true,
            force,
            recorder: "record",
        }
    }
}

/// A complete recording, mapped or in memory.
pub(crate) struct Input {
    /// The file as the user named it, for messages.
    pub(crate) path: PathBuf,
    /// The modification time, in seconds since 1970.
    pub(crate) mtime: i64,
    /// The bytes of the file; if the recording is a directory, those of its header file.
    pub(crate) bytes: RecordingBytes,
    /// The files `data.0` and so on, if the recording is a directory.
    parts: Vec<DirectoryFile>,
    /// The number of threads that decompress records.
    threads: NonZeroUsize,
    /// The records, if they are compressed or in several files, so that `bytes` does not contain them; set by the first
    /// [`Input::parse_quietly`].
    unpacked: OnceCell<UnpackedRecords>,
    /// Whether this is a copy of a truncated recording: the copy itself is complete.
    pub(super) is_truncated_copy: bool,
}

/// A recording that is complete, or read as a stream.
pub(crate) enum OpenedInput {
    /// Complete: its records can be read several times.
    Whole(Input),
    /// Records of pipe mode, streamed.
    Stream(RecordingStream),
}

impl Input {
    /// Returns a recording that consists of one file.
    pub(super) fn new(path: PathBuf, mtime: i64, bytes: RecordingBytes) -> Self {
        Self {
            path,
            mtime,
            bytes,
            parts: Vec::new(),
            threads: default_jobs(),
            unpacked: OnceCell::new(),
            is_truncated_copy: false,
        }
    }

    /// Opens the file given by `-i`, by default a pipe on stdin or perf.data. A pipe is read to its end first.
    ///
    /// # Errors
    ///
    /// Status 255: the file cannot be read, is empty, or, without `-f`, belongs to neither root nor the user; a pipe does not
    /// start with a recording, or its data cannot be stored. Also those of [`jobs`].
    pub(crate) fn open(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        OpenedInput::open(matches, context)?.complete(context)
    }

    /// Reads header, events and features; warns about damage and continues if possible.
    ///
    /// # Errors
    ///
    /// Status 255: not a recording, its header cannot be parsed, or its unpacked records cannot be stored.
    pub(crate) fn parse(&self, context: &Context) -> Result<PerfData<'_>, CliError> {
        let data = self.parse_quietly(context)?;
        self.warn_of_damage(&data, context);
        Ok(data)
    }

    /// Warns about damage, as [`Input::parse`] does.
    pub(crate) fn warn_of_damage(&self, data: &PerfData<'_>, context: &Context) {
        for finding in data.findings() {
            context.warn(format_args!("{}: {finding}", self.path.display()));
        }
    }

    /// Like [`Input::parse`], but leaves the warnings about damage to [`Input::warn_of_damage`], except for one: if the first
    /// error in unpacking is in an additional file (`data.N`) of a directory, the first call warns about it.
    ///
    /// # Errors
    ///
    /// Those of [`Input::parse`].
    pub(crate) fn parse_quietly(&self, context: &Context) -> Result<PerfData<'_>, CliError> {
        let data =
            PerfData::parse(&self.bytes).map_err(|cause| invalid_recording(&self.path, &cause))?;
        if self.parts.is_empty() && !data.is_compressed() {
            return Ok(data);
        }
        let unpacked = match self.unpacked.get() {
            Some(unpacked) => unpacked,
            None => {
                let fresh = self.unpack(&data, context)?;
                self.unpacked.get_or_init(|| fresh)
            }
        };
        Ok(data.with_records(&unpacked.records, unpacked.summary.clone()))
    }

    /// Decompresses and joins the records of `data`.
    fn unpack(&self, data: &PerfData<'_>, context: &Context) -> Result<UnpackedRecords, CliError> {
        let spool = context.spool();
        let directory = spool.directory().display().to_string();
        let unpacked = UnpackedRecords::new(data, &self.parts, self.threads, spool);
        let unpacked = unpacked.map_err(|error| {
            let failure = format!("failed to store the unpacked records in {directory}");
            CliError::failure(255, anyhow::Error::new(error).context(failure))
        })?;
        if let Some(damage) = &unpacked.damage {
            context.warn(damage);
        }
        Ok(unpacked)
    }
}

impl OpenedInput {
    /// Returns the complete recording: a pipe is read to its end first.
    ///
    /// # Errors
    ///
    /// The pipe cannot be read, or its data cannot be stored.
    pub(crate) fn complete(self, context: &Context) -> Result<Input, CliError> {
        match self {
            Self::Whole(input) => Ok(input),
            Self::Stream(stream) => stream.spool(context),
        }
    }

    /// Opens the recording as [`Input::open`] does, but does not read a pipe-mode stream to its end.
    ///
    /// # Errors
    ///
    /// Those of [`Input::open`].
    pub(crate) fn open(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let threads = jobs(matches, context)?;
        let opened = Self::of(InputName::new(matches), context)?;
        Ok(match opened {
            Self::Whole(input) => Self::Whole(Input { threads, ..input }),
            stream => stream,
        })
    }

    /// Opens the file `given` as [`OpenedInput::open`] does; `force` ignores the owner.
    ///
    /// # Errors
    ///
    /// Those of [`OpenedInput::open`].
    pub(crate) fn named(
        given: Option<PathBuf>,
        force: bool,
        context: &Context,
    ) -> Result<Self, CliError> {
        Self::of(InputName::of(given, force), context)
    }

    /// Opens the recording `name` as [`OpenedInput::open`] does.
    ///
    /// # Errors
    ///
    /// Those of [`OpenedInput::open`].
    pub(crate) fn of(name: InputName, context: &Context) -> Result<Self, CliError> {
        let InputName { given, force, .. } = name;
        if (name.may_be_stdin || given.is_some())
            && let Some(stream) = on_stdin(given.as_deref(), context)?
        {
            // A stream in pipe mode is returned as such, other recordings are read to their end.
            return stream.open(context);
        }
        let recorder = given.is_none().then_some(name.recorder);
        let path = given.unwrap_or_else(|| PathBuf::from(DEFAULT));
        let failed = |error: &io::Error| unreadable(context, &path, recorder, error);
        let mut file = FoundFile::find(&path).map_err(|error| failed(&error))?;
        let directory = match file.metadata().is_dir() {
            true => Some(Folder::open(&path).map_err(|error| failed(&error))?),
            false => None,
        };
        if let Some(directory) = &directory {
            let header = directory.find(HEADER_FILE_NAME.as_ref());
            file = header.map_err(|error| no_header(&path, &error))?;
        }
        check(&path, file.metadata(), force)?;
        if file.is_fifo() {
            let input = file.for_reading_any_type().map(PipeInput::new);
            return input
                .and_then(|input| RecordingStream::begin(path.clone(), input))
                .map_err(|error| failed(&error))?
                .open(context);
        }
        let bytes = file
            .for_reading()
            .and_then(|file| rperf_sys::map_open_file(&file));
        let bytes = bytes.map_err(|error| failed(&error))?;
        let parts = match &directory {
            Some(directory) => {
                DirectoryFile::of_directory(directory, |metadata| check(&path, metadata, force))?
            }
            None => Vec::new(),
        };
        let input = Input::new(path, file.metadata().mtime(), RecordingBytes::Mapped(bytes));
        Ok(Self::Whole(Input { parts, ..input }))
    }
}

/// Rejects empty regular files and, without `force`, files that belong to neither root nor the user.
fn check(path: &Path, metadata: &fs::Metadata, force: bool) -> Result<(), CliError> {
    let path = path.display();
    let kind = metadata.file_type();
    let owner = metadata.uid();
    if !is_trusted_owner(owner) && !force {
        return Err(CliError::message(
            255,
            format!("File {path} not owned by current user or root (use -f to override)"),
        ));
    }
    if kind.is_file() && metadata.len() == 0 {
        let message = format!("zero-sized data ({path}), nothing to do!");
        return Err(CliError::message(255, message)
            .hint("the recording was interrupted before data were written; record again"));
    }
    Ok(())
}

fn no_header(path: &Path, error: &io::Error) -> CliError {
    let cause = without_error_numbers(&error.to_string());
    let path = path.display();
    let message = format!("{path} is a directory: {path}/{HEADER_FILE_NAME}: {cause}");
    CliError::message(255, message)
}

/// The error for a file that is not a recording, or whose header cannot be parsed.
pub(crate) fn invalid_recording(path: &Path, cause: &rperf_perfdata::Error) -> CliError {
    let path = path.display();
    CliError::message(255, format!("incompatible file format ({path}): {cause}"))
}

/// Returns the stream on stdin if `-` is given, or if no file is given and stdin is a pipe.
fn on_stdin(given: Option<&Path>, context: &Context) -> Result<Option<RecordingStream>, CliError> {
    let is_stdin = given.map_or_else(stdin_is_pipe, |path| path == Path::new(STDIN));
    if !is_stdin {
        return Ok(None);
    }
    let no_recorder = None;
    PipeInput::stdin()
        .and_then(|input| RecordingStream::begin(STDIN.into(), input))
        .map(Some)
        .map_err(|error| unreadable(context, Path::new(STDIN), no_recorder, &error))
}

/// A recording, or folded stacks as text.
pub(crate) enum TextOrRecording {
    Text(Box<dyn Read>),
    Recording(Box<OpenedInput>),
}

impl TextOrRecording {
    /// Opens the recording like [`OpenedInput::named`], or folded stacks on stdin:
    ///
    /// - If `-` is given, or no file is given and stdin is a pipe: stdin is text if its first bytes look like text.
    /// - If no file is given and stdin is redirected to a file: stdin is text if the file starts with a folded stack.
    ///
    /// # Errors
    ///
    /// Those of [`OpenedInput::named`].
    pub(crate) fn named(
        given: Option<PathBuf>,
        force: bool,
        context: &Context,
    ) -> Result<Self, CliError> {
        if let Some(stream) = on_stdin(given.as_deref(), context)? {
            return match stream.is_text() {
                true => Ok(Self::Text(Box::new(stream.into_text()))),
                false => stream.open(context).map(Box::new).map(Self::Recording),
            };
        }
        if given.is_none()
            && let Some(text) = redirected_text()
        {
            return Ok(Self::Text(Box::new(text)));
        }
        OpenedInput::named(given, force, context)
            .map(Box::new)
            .map(Self::Recording)
    }
}

/// Opens, once more, the file to which stdin is redirected, so that the position of stdin does not change. `None` if stdin is not
/// redirected to a file, or if the first line of the file is not a folded stack.
fn redirected_text() -> Option<impl Read> {
    let path = Path::new("/proc/self/fd/0");
    let stdin = FoundFile::find(path)
        .ok()
        .filter(|stdin| stdin.metadata().is_file());
    let mut file = stdin?.for_reading().ok()?;
    let mut beginning = Vec::new();
    (&mut file)
        .take(MAX_FIRST_LINE)
        .read_to_end(&mut beginning)
        .ok()?;
    let line = beginning.split(|byte| *byte == b'\n').next()?;
    let weight = line.rsplit(|byte| *byte == b' ').next()?;
    let is_folded = line.contains(&b' ') && weight.iter().all(u8::is_ascii_digit);
    (is_folded && !weight.is_empty()).then(|| io::Cursor::new(beginning).chain(file))
}

/// Whether stdin is a pipe, which perf reads if no file is named.
fn stdin_is_pipe() -> bool {
    fs::metadata("/proc/self/fd/0").is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Returns the error for a file that cannot be opened or read. If given, `recorder` is the command that the user is advised to
/// run first.
fn unreadable(
    context: &Context,
    path: &Path,
    recorder: Option<&str>,
    error: &io::Error,
) -> CliError {
    let cause = without_error_numbers(&error.to_string());
    let program = context.program;
    let advice = recorder.map_or_else(String::new, |recorder| {
        format!("  (try '{program} {recorder}' first)")
    });
    CliError::message(
        255,
        format!("failed to open {}: {cause}{advice}", path.display()),
    )
}
