//! `--header` and `--header-only`: what the recorder noted, for the commands that read recordings.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use rperf_perfdata::PerfData;
use rperf_view::header::{HeaderOptions, write_header};

use super::context::Context;
use super::error::CliError;
use super::input::Input;

/// Prints the header of `input` with local times.
pub(crate) fn print_header(
    context: &Context,
    input: &Input,
    data: &PerfData<'_>,
) -> Result<(), CliError> {
    let options = HeaderOptions {
        captured: fs::metadata(&input.path).map_or(0, |metadata| metadata.mtime()),
        zone: &rperf_sys::utc_offset,
        full: false,
    };
    write_header(&mut context.stdout(), data, &options)?;
    Ok(())
}
