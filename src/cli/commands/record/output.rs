//! Where a recording goes: a file, or in pipe mode the standard output.

use std::fs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_safefs::{Naming, find_in_place};
use rperf_session::{KernelCode, Rotation, Threads};
use rperf_symbol::Files as _;

use super::{rotation, threads};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::input::DEFAULT;
use crate::cli::kernel_copy::Kernel;
use crate::cli::live::explain::reason;
use crate::cli::options::flag;

/// The memory of the kernel that runs.
const MEMORY: &str = "/proc/kcore";
/// What standard output is.
const OWN_STDOUT: &str = "/proc/self/fd/1";
/// What `-o` calls the standard output.
const STDOUT: &str = "-";

/// The output of `record`.
pub(super) struct Output {
    /// Its name for messages.
    pub(super) name: PathBuf,
    /// Whether the user gave that name.
    pub(super) naming: Naming,
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
            name: name(matches),
            naming: naming(matches),
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
    let opened = DiskFiles.open(Path::new(MEMORY));
    let opened = opened.map_err(|error| unreadable(format!("{MEMORY}: {}", reason(&error))));
    opened
        .and_then(|_| Kernel::read(Path::new(MEMORY)).map_err(unreadable))
        .map(|kernel| Some(Arc::new(kernel) as Arc<dyn KernelCode>))
}

/// Where bytes go.
enum Destination<'m> {
    /// Into the standard output.
    Stdout,
    /// Into a pipe with a name.
    Fifo(&'m str),
    /// Into a file, or a device.
    File,
}

/// What `-o` names; without it the standard output where that is a pipe.
fn destination(matches: &ArgMatches) -> Destination<'_> {
    let own = pipe(OWN_STDOUT);
    match given(matches) {
        Some(STDOUT) => Destination::Stdout,
        Some(name) => match pipe(name) {
            None => Destination::File,
            named if named == own => Destination::Stdout,
            Some(_) => Destination::Fifo(name),
        },
        None if own.is_some() => Destination::Stdout,
        None => Destination::File,
    }
}

/// Which pipe a path leads to: device and inode; `None` for anything else.
fn pipe(path: &str) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    let is_pipe = metadata.file_type().is_fifo();
    is_pipe.then(|| (metadata.dev(), metadata.ino()))
}

/// The pipe that the recording goes into, if it does: the standard output or a fifo.
/// `command` makes it, `reader` reads it.
pub(in crate::cli::commands) fn stream(
    matches: &ArgMatches,
    context: &Context,
    (command, reader): (&str, &str),
) -> Result<Option<Arc<File>>, CliError> {
    match destination(matches) {
        Destination::File => return Ok(None),
        Destination::Fifo(name) => {
            // Waits for who reads it.
            let found = find_in_place(Path::new(name), Naming::Given);
            let opened = found.and_then(|found| match found {
                Some(found) => found.for_writing(),
                None => Err(io::Error::from_raw_os_error(libc::ENOENT)),
            });
            let opened = opened.map_err(|cause| {
                CliError::message(255, format!("failed to open {name} : {}", reason(&cause)))
            })?;
            return Ok(Some(Arc::new(opened)));
        }
        Destination::Stdout => {}
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
pub(in crate::cli::commands) fn name(matches: &ArgMatches) -> PathBuf {
    match destination(matches) {
        Destination::Stdout => STDOUT.into(),
        _ => given(matches).unwrap_or(DEFAULT).into(),
    }
}

/// Whether the user gave the name of the output.
pub(in crate::cli::commands) fn naming(matches: &ArgMatches) -> Naming {
    given(matches).map_or(Naming::Default, |_| Naming::Given)
}

/// Whether the output takes the place of what a workload prints.
pub(in crate::cli::commands) fn takes_stdout(name: &Path) -> bool {
    name == Path::new(STDOUT)
}

fn given(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("output").map(String::as_str)
}
