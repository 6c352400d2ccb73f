//! What is said at the end about a recording that could be read, but not without loss.

use std::path::Path;

use rperf_replay::{Bad, Diagnostics};
use rperf_resolve::Resolver;
use rperf_symbol::Finding;

use super::context::Context;
use super::error::CliError;

/// Warns of what was lost or skipped in `path`.
///
/// # Errors
///
/// Status 255 where reading stopped before the end of the recording: what was printed is not all of it.
pub(crate) fn conclude(
    path: &Path,
    found: &Diagnostics,
    context: &Context,
) -> Result<(), CliError> {
    let shown = path.display();
    if found.lost_chunks > 0 {
        context.warn(format_args!(
            "Processed {} events and lost {} chunks!",
            found.records, found.lost_chunks
        ));
        context.note(format_args!(
            "hint: {} records were lost while recording: give it larger buffers (-m) or a lower frequency (-F)",
            found.lost_records
        ));
    }
    if found.lost_samples > 0 {
        context.warn(format_args!(
            "{} samples were lost while recording",
            found.lost_samples
        ));
    }
    if found.unknown_ids > 0 {
        context.warn(format_args!(
            "{shown}: {} samples of events that the header does not describe were skipped",
            found.unknown_ids
        ));
    }
    warn_of(&found.bad_records, "records", path, context);
    warn_of(&found.bad_samples, "samples", path, context);
    match &found.end {
        None => Ok(()),
        Some(end) => Err(CliError::message(255, format!("{shown}: {end}"))
            .hint("what was read before that is printed above")),
    }
}

/// What there is to say about the symbols that were wanted; with `-v`, all of it.
pub(crate) fn tell_of_symbols(context: &Context, resolver: &Resolver<'_>, verbose: bool) {
    warn_of_symbols(context, resolver);
    if verbose {
        for finding in resolver.findings() {
            context.note(finding.what);
        }
    }
}

/// Warns of files that are not those of the recording, and of debug information that can't be read.
pub(crate) fn warn_of_symbols(context: &Context, resolver: &Resolver<'_>) {
    let world = resolver.world();
    let is_replaced = |found: &rperf_resolve::Finding<'_>| {
        let is_other = matches!(found.what, Finding::BuildIdMismatch { .. });
        // Kernels are looked for in many places, and named from elsewhere.
        is_other && !world.dso(found.dso).is_kernel() && !resolver.has_file(found.dso)
    };
    let replaced: Vec<_> = resolver.findings().filter(is_replaced).collect();
    if let [first, rest @ ..] = replaced.as_slice() {
        context.warn(first.what);
        let others = match rest.len() {
            0 => String::new(),
            count => format!(" and those of {count} other files"),
        };
        context.note(format_args!(
            "hint: its functions{others} are shown as addresses; 'buildid-cache --add' takes the files that were recorded"
        ));
    }
    for finding in resolver.debug_findings() {
        context.warn(finding);
    }
}

fn warn_of(bad: &Bad, what: &str, path: &Path, context: &Context) {
    if let Some((offset, error)) = &bad.first {
        context.warn(format_args!(
            "{}: {} {what} cannot be decoded; the first, at offset {offset}: {error}",
            path.display(),
            bad.count
        ));
    }
}
