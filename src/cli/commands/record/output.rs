//! The output of a recording: a file, or stdout in pipe mode.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_session::{KernelCodeReader, OutputOptions};
use rperf_symbol::Files as _;

use super::{build_ids, rotation, timing};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::kernel_copy::KernelFiles;
use crate::cli::live::explain::reason;
use crate::cli::options::flag;
use crate::cli::shared::recording_output::{output_path, path_origin, stream};
use crate::cli::shared::sampling::command_line;
use rperf_input::DiskFiles;

/// The memory of the running kernel, as an ELF core file.
const KCORE: &str = "/proc/kcore";

/// Returns the output options. Two of them are set later: the rewriter, which changes records before they are written, and the
/// events of `--switch-output-event`.
pub(super) fn options(matches: &ArgMatches, context: &Context) -> Result<OutputOptions, CliError> {
    // Errors name `record` as the command that writes the stream, and `script` as one that reads it.
    let stream = stream(matches, context, "record", "script")?;
    let rotation = rotation::rotation(matches, stream.is_some())?;
    let can_be_directory = stream.is_none() && rotation.is_none();
    Ok(OutputOptions {
        path: output_path(matches),
        naming: path_origin(matches),
        kernel_code: kernel_code(matches, can_be_directory)?,
        stream,
        rewriter: None,
        compress: compress(matches)?,
        timestamped: flag(matches, "timestamp-filename") == Some(true),
        rotation,
        switch_events: Vec::new(),
        max_size: timing::max_size(matches)?,
        build_ids: build_ids::are_recorded(matches, context),
        cache_all: flag(matches, "buildid-all") == Some(true),
        command_line: command_line(context),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cache: cache(matches, context),
    })
}

/// Returns the build-id cache to add objects to; `None` if none are added.
fn cache(matches: &ArgMatches, context: &Context) -> Option<PathBuf> {
    build_ids::are_cached(matches, context)
        .then(|| context.buildid_dir())
        .flatten()
}

/// `-z`: whether to compress. perf's levels are 1 to 22; 0 disables compression. The level itself is not used.
fn compress(matches: &ArgMatches) -> Result<bool, CliError> {
    match matches
        .get_one::<String>("compression-level")
        .map(String::as_str)
    {
        None => Ok(false),
        Some("") => Ok(true),
        Some(word) => match word.parse() {
            Ok(level @ 0..=22_u8) => Ok(level > 0),
            _ => Err(CliError::usage(format!(
                "-z: '{word}' is not a compression level: 0 to 22"
            ))),
        },
    }
}

/// `--kcore`, which makes the output a directory; an error unless `can_be_directory`.
fn kernel_code(
    matches: &ArgMatches,
    can_be_directory: bool,
) -> Result<Option<Arc<dyn KernelCodeReader>>, CliError> {
    if flag(matches, "kcore") != Some(true) {
        return Ok(None);
    }
    if !can_be_directory {
        return Err(CliError::usage(
            "--kcore writes a directory: it excludes pipes and --switch-output",
        ));
    }
    let unreadable =
        |why: String| CliError::message(255, "ERROR: kcore is not readable.").detail(why);
    // Only checks the permission: `KernelFiles` does not open the file before it copies the code.
    let opened = DiskFiles.open(Path::new(KCORE));
    opened.map_err(|error| unreadable(format!("{KCORE}: {}", reason(&error))))?;
    let kernel = KernelFiles::read(Path::new(KCORE)).map_err(unreadable)?;
    Ok(Some(Arc::new(kernel)))
}
