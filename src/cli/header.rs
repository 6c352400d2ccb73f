//! `--header` and `--header-only`: the recording's header, for the commands that read recordings.

use rperf_perfdata::PerfData;
use rperf_view::header::{HeaderOptions, write_header};

use super::context::Context;
use super::error::CliError;
use super::input::Input;

/// Prints the header of `input` with times in the local time zone; with `full`, also long sections such as topology and caches.
pub(crate) fn print_header(
    context: &Context,
    input: &Input,
    data: &PerfData<'_>,
    full: bool,
) -> Result<(), CliError> {
    let header_options = HeaderOptions {
        full,
        ..options(input.mtime)
    };
    write_header(&mut context.stdout(), data, &header_options)?;
    Ok(())
}

/// Returns the options to print the header without long sections. `mtime` is the recording's modification time in seconds since
/// 1970.
pub(crate) fn options(mtime: i64) -> HeaderOptions<'static> {
    HeaderOptions {
        // As in perf, the modification time is printed as the time of capture.
        captured: mtime,
        zone: &rperf_sys::utc_offset,
        full: false,
    }
}
