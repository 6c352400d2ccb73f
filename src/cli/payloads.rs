//! What tracepoints tell, for the commands that show it.

use std::path::Path;

use rperf_lines::Payloads;
use rperf_perfdata::Described;

use super::context::Context;
use super::error::CliError;

/// The tracepoints of the recording in `path`, ready to be printed; says which of them can't be.
///
/// # Errors
///
/// Status 255: the recording's description of its tracepoints is damaged.
pub(crate) fn payloads(
    context: &Context,
    path: &Path,
    recording: Described<'_>,
) -> Result<Payloads, CliError> {
    let payloads = Payloads::new(recording).map_err(|cause| {
        let error = anyhow::Error::new(cause).context(path.display().to_string());
        CliError::failure(255, error)
            .hint("without what tracepoints tell: script -F -trace, report -s comm,dso,symbol")
    })?;
    for finding in payloads.findings() {
        context.warn(finding);
    }
    Ok(payloads)
}
