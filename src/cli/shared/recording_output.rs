//! The output of a recording: a file, the standard output or a FIFO.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_safefs::{PathOrigin, find_in_place};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::DEFAULT;
use crate::cli::live::explain::reason;

/// The path of this process's stdout.
const OWN_STDOUT: &str = "/proc/self/fd/1";
/// The value of `-o` for the standard output.
const STDOUT: &str = "-";

/// The destination of the output.
enum OutputDestination<'m> {
    /// The standard output.
    Stdout,
    /// A named pipe.
    Fifo(&'m str),
    /// A file or a device.
    File,
}

/// Returns the destination given by `-o`; by default the standard output if that is a pipe.
fn destination(matches: &ArgMatches) -> OutputDestination<'_> {
    let stdout = pipe(OWN_STDOUT);
    match given_output(matches) {
        Some(STDOUT) => OutputDestination::Stdout,
        Some(name) => match pipe(name) {
            None => OutputDestination::File,
            // A path of stdout itself, such as `/dev/stdout`.
            named if named == stdout => OutputDestination::Stdout,
            Some(_) => OutputDestination::Fifo(name),
        },
        None if stdout.is_some() => OutputDestination::Stdout,
        None => OutputDestination::File,
    }
}

/// Returns device and inode of a pipe; `None` for anything else.
fn pipe(path: &str) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    let is_pipe = metadata.file_type().is_fifo();
    is_pipe.then(|| (metadata.dev(), metadata.ino()))
}

/// Returns the standard output or FIFO that the recording is written to; `None` for a file. `command`, which writes the
/// recording, and `reader`, which reads it, are named in errors.
pub(crate) fn stream(
    matches: &ArgMatches,
    context: &Context,
    command: &str,
    reader: &str,
) -> Result<Option<Arc<File>>, CliError> {
    match destination(matches) {
        OutputDestination::File => return Ok(None),
        OutputDestination::Fifo(name) => {
            // `None` if the FIFO was removed, or replaced by a regular file, since `destination` found it.
            let fifo = find_in_place(Path::new(name), PathOrigin::Given);
            let opened = fifo.and_then(|fifo| match fifo {
                // Blocks until a reader opens the FIFO.
                Some(fifo) => fifo.for_writing(),
                None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            });
            let opened = opened.map_err(|cause| {
                CliError::message(255, format!("failed to open {name} : {}", reason(&cause)))
            })?;
            return Ok(Some(Arc::new(opened)));
        }
        OutputDestination::Stdout => {}
    }
    // `context.output` is the standard output as a stream of text.
    if context.output.is_terminal() {
        let program = context.program;
        let message = format!("{program} {command}: a recording cannot be written to a terminal");
        return Err(CliError::usage(message).hint(format!(
            "'{program} {command} -o - ... | {program} {reader}' reads it, -o FILE writes a file"
        )));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the recording bypasses the text output, which stays empty"
    )]
    let stdout = io::stdout();
    let fd = stdout.as_fd().try_clone_to_owned();
    let fd = fd.map_err(|error| CliError::failure(255, error))?;
    Ok(Some(Arc::new(fd.into())))
}

/// Returns the path of the output, `-` for the standard output.
pub(crate) fn output_path(matches: &ArgMatches) -> PathBuf {
    match destination(matches) {
        OutputDestination::Stdout => STDOUT.into(),
        _ => given_output(matches).unwrap_or(DEFAULT).into(),
    }
}

/// Returns whether the output's path was given by the user or is the default.
pub(crate) fn path_origin(matches: &ArgMatches) -> PathOrigin {
    given_output(matches).map_or(PathOrigin::Default, |_| PathOrigin::Given)
}

/// Whether the output `path` is the standard output. The workload must then not write to it.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path == Path::new(STDOUT)
}

fn given_output(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("output").map(String::as_str)
}
