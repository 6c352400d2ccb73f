//! Where a recording goes: a file, or in pipe mode the standard output.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_session::{KernelCode, Rotation, Threads};

use super::{rotation, threads};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::DEFAULT;
use crate::cli::kernel_copy::Kernel;
use crate::cli::live::explain::reason;
use crate::cli::options::flag;

/// The memory of the kernel that runs.
const MEMORY: &str = "/proc/kcore";
/// What `-o` calls the standard output.
const STDOUT: &str = "-";

/// The output of `record`.
pub(super) struct Output {
    /// Its name for messages.
    pub(super) name: PathBuf,
    /// The pipe, where it is one.
    pub(super) stream: Option<Arc<File>>,
    /// When it goes on in another file.
    pub(super) rotation: Option<Rotation>,
    /// The threads that write it, where it is a directory.
    pub(super) threads: Option<Threads>,
    /// Whose code is laid beside the records, in a directory.
    pub(super) kernel_code: Option<Arc<dyn KernelCode>>,
}

impl Output {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let stream = stream(matches, context, ("record", "script"))?;
        let is_stream = stream.is_some();
        let rotation = rotation::rotation(matches, is_stream)?;
        Ok(Self {
            name: name(matches, is_stream),
            threads: threads::threads(matches, is_stream)?,
            kernel_code: kernel_code(matches, stream.is_none() && rotation.is_none())?,
            stream,
            rotation,
        })
    }
}

/// Of `--kcore`, which takes an output that is one directory.
fn kernel_code(
    matches: &ArgMatches,
    is_one: bool,
) -> Result<Option<Arc<dyn KernelCode>>, CliError> {
    if flag(matches, "kcore") != Some(true) {
        return Ok(None);
    }
    if !is_one {
        return Err(CliError::usage(
            "--kcore writes a directory, which is not for a pipe, nor for --switch-output",
        ));
    }
    let unreadable =
        |why: String| CliError::message(255, "ERROR: kcore is not readable.").detail(why);
    let opened = File::open(MEMORY);
    let opened = opened.map_err(|error| unreadable(format!("{MEMORY}: {}", reason(&error))));
    opened
        .and_then(|_| Kernel::read(Path::new(MEMORY)).map_err(unreadable))
        .map(|kernel| Some(Arc::new(kernel) as Arc<dyn KernelCode>))
}

/// The standard output, where the recording goes there: by `-o -`, and without `-o` where it is a pipe.
/// `command` makes it, `reader` reads it.
pub(in crate::cli::commands) fn stream(
    matches: &ArgMatches,
    context: &Context,
    (command, reader): (&str, &str),
) -> Result<Option<Arc<File>>, CliError> {
    let wanted = match given(matches) {
        Some(name) => name == STDOUT,
        None => stdout_is_pipe(),
    };
    if !wanted {
        return Ok(None);
    }
    if context.output.is_terminal() {
        let program = context.program;
        let message = format!("{program} {command}: a recording is not for a terminal");
        return Err(CliError::usage(message).hint(format!(
            "'{program} {command} -o - ... | {program} {reader}' reads it, -o FILE keeps it"
        )));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the recording goes past the text output, which stays empty"
    )]
    let stdout = io::stdout();
    let fd = stdout.as_fd().try_clone_to_owned();
    let fd = fd.map_err(|error| CliError::failure(255, error))?;
    Ok(Some(Arc::new(fd.into())))
}

/// The name of the output for messages.
pub(in crate::cli::commands) fn name(matches: &ArgMatches, is_stream: bool) -> PathBuf {
    match (is_stream, given(matches)) {
        (true, _) => STDOUT.into(),
        (false, given) => given.unwrap_or(DEFAULT).into(),
    }
}

fn given(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("output").map(String::as_str)
}

fn stdout_is_pipe() -> bool {
    fs::metadata("/proc/self/fd/1").is_ok_and(|metadata| metadata.file_type().is_fifo())
}
