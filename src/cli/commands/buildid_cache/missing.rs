//! `-M`: objects of a recording that are not in the cache.

use std::io::Write as _;
use std::path::Path;

use rperf_buildid_cache::Cache;
use rperf_symbol::BuildId;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::OpenedInput;

/// Prints build-id and name of the objects in the header of `recording` that are not in `cache`.
pub(super) fn print(
    recording: &Path,
    force: bool,
    cache: &Cache,
    context: &Context,
) -> Result<(), CliError> {
    // `complete`: a pipe is read to its end first.
    let input =
        OpenedInput::named(Some(recording.to_owned()), force, context)?.complete(context)?;
    let data = input.parse(context)?;
    let mut out = context.stdout();
    for entry in data.features().build_ids() {
        // An empty build-id, or one of zeros, identifies no object.
        let Some(id) = BuildId::from_bytes(entry.id()) else {
            continue;
        };
        if cache.object(&id.to_string()).is_none() {
            writeln!(out, "{id} {}", entry.filename)?;
        }
    }
    Ok(())
}
