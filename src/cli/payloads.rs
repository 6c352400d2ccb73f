//! Tracepoint fields, for the commands that print them.

use std::path::Path;

use rperf_lines::TracepointPrinter;
use rperf_perfdata::Metadata;

use super::context::Context;
use super::error::CliError;

/// Returns the tracepoint formats of the recording in `path`, prepared for printing; warns about tracepoints that are not
/// printed as the kernel prints them.
///
/// # Errors
///
/// Status 255: the recording's description of its tracepoints is damaged.
pub(crate) fn tracepoint_printer(
    context: &Context,
    path: &Path,
    recording: Metadata<'_>,
) -> Result<TracepointPrinter, CliError> {
    let printer = TracepointPrinter::new(recording).map_err(|cause| {
        let error = anyhow::Error::new(cause).context(path.display().to_string());
        CliError::failure(255, error)
            .hint("omit tracepoint data: script -F -trace, report -s comm,dso,symbol")
    })?;
    for finding in printer.findings() {
        context.warn(finding);
    }
    Ok(printer)
}
