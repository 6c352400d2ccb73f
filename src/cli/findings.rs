//! The final warnings of a command that reads a recording: lost and bad records, and problems with symbols.

use std::path::Path;

use rperf_names::{counted, was_or_were};
use rperf_replay::{BadRecord, DecodeErrors, Diagnostics};
use rperf_resolve::Resolver;
use rperf_symbol::{SymbolFinding, cache_entry};

use super::context::Context;
use super::error::CliError;
use super::missing_names;

/// The exit status if records could not be decoded.
const BAD_RECORDS: u8 = 1;

/// Warns about lost, late or skipped records of the recording `path`, which may be a truncated file. Records that could not be
/// decoded are an error; they are only warnings if the file is truncated or reading stopped before its end, which is then the
/// error.
///
/// # Errors
///
/// Status 255: records after the end of the file or after damage are missing. Status 1: records could not be decoded.
pub(crate) fn conclude(
    path: &Path,
    is_truncated: bool,
    diagnostics: &Diagnostics,
    context: &Context,
) -> Result<(), CliError> {
    warn_of_losses(path, diagnostics, context);
    let decode_errors = [
        (&diagnostics.bad_records, "record"),
        (&diagnostics.bad_samples, "sample"),
    ];
    let mut lines = decode_errors.iter().filter_map(|(errors, noun)| {
        let first = errors.first.as_ref()?;
        Some(bad_records(errors, first, noun, path))
    });
    // A file can be truncated between two records: then nothing is wrong with those that are left.
    let truncated = || is_truncated.then(|| "the file is truncated".to_owned());
    let end = diagnostics.end.as_ref().map(ToString::to_string);
    if let Some(end) = end.or_else(truncated) {
        lines.for_each(|line| context.warn(line));
        let message = format!("{}: {end}", path.display());
        return Err(CliError::message(255, message)
            .hint("the output contains only the records before this damage"));
    }
    match lines.next() {
        None => Ok(()),
        Some(first) => Err(lines
            .fold(CliError::message(BAD_RECORDS, first), CliError::detail)
            .hint("the output lacks these records; 'data check' lists all damage")),
    }
}

/// Like [`conclude`], for a stream, which has no size by which it could be recognized as truncated.
///
/// # Errors
///
/// Those of [`conclude`].
pub(crate) fn conclude_stream(
    path: &Path,
    diagnostics: &Diagnostics,
    context: &Context,
) -> Result<(), CliError> {
    let is_truncated = false;
    conclude(path, is_truncated, diagnostics, context)
}

/// Warns about lost, late and skipped records.
fn warn_of_losses(path: &Path, diagnostics: &Diagnostics, context: &Context) {
    let file = path.display();
    if diagnostics.lost_chunks > 0 {
        context.warn(format_args!(
            "Processed {} events and lost {} chunks!",
            diagnostics.records, diagnostics.lost_chunks
        ));
        context.note(format_args!(
            "hint: {} {} lost while recording: use larger ring buffers (-m), or record fewer samples (-F, -c, --filter)",
            counted(diagnostics.lost_records, "record"),
            was_or_were(diagnostics.lost_records)
        ));
    }
    if diagnostics.lost_samples > 0 {
        context.warn(format_args!(
            "{} {} lost while recording",
            counted(diagnostics.lost_samples, "sample"),
            was_or_were(diagnostics.lost_samples)
        ));
    }
    if diagnostics.unknown_ids > 0 {
        context.warn(format_args!(
            "{file}: {} of events that the header does not describe {} skipped",
            counted(diagnostics.unknown_ids, "sample"),
            was_or_were(diagnostics.unknown_ids)
        ));
    }
    if diagnostics.unknown_kinds > 0 {
        context.warn(format_args!(
            "Found {} unknown events!",
            diagnostics.unknown_kinds
        ));
        context.note(format_args!(
            "hint: {file}: records of unknown types were skipped; a newer version may have written them"
        ));
    }
    if diagnostics.out_of_order > 0 {
        context.warn(format_args!(
            "{} out of order events recorded.",
            diagnostics.out_of_order
        ));
    }
}

/// Warns about problems with the symbols that were used; with `-v`, also prints the findings that are not among
/// [`Resolver::always_reported_findings`].
pub(crate) fn report_symbol_problems(context: &Context, resolver: &Resolver<'_>, verbose: bool) {
    warn_of_symbol_problems(context, resolver);
    if verbose {
        let always_reported = resolver.always_reported_findings();
        let findings = resolver.findings().map(|finding| finding.problem);
        for finding in findings.filter(|finding| !always_reported.contains(finding)) {
            context.note(finding);
        }
    }
}

/// The end of a hint for a file with another build-id: the path in the build-id cache where the recorded file was looked for.
/// Empty for other findings, and without a cache.
fn place_of_copy(finding: &SymbolFinding, context: &Context) -> String {
    let (SymbolFinding::BuildIdMismatch { wanted, .. }, Some(cache)) =
        (finding, context.buildid_dir())
    else {
        return String::new();
    };
    let copy = cache_entry(&cache, wanted).join("elf");
    format!(": there is no {}", copy.display())
}

/// The words after "its functions" in a hint: how many other files have the same problem.
fn and_other_files(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and those of another file".to_owned(),
        count => format!(" and those of {count} other files"),
    }
}

/// Warns about files that differ from the recorded ones, unusable perf maps, JIT dumps and files given for the kernel
/// ([`Resolver::always_reported_findings`]), and debug information that cannot be read; notes which code has no names.
pub(crate) fn warn_of_symbol_problems(context: &Context, resolver: &Resolver<'_>) {
    let world = resolver.world();
    let is_replaced = |finding: &rperf_resolve::ObjectFinding<'_>| {
        let is_other = matches!(finding.problem, SymbolFinding::BuildIdMismatch { .. });
        // Files of a kernel are looked for in many places, so its symbols may come from something other than the file that
        // differs, even from kallsyms, which `has_file` does not count.
        is_other && !world.dso(finding.dso).is_kernel() && !resolver.has_file(finding.dso)
    };
    let replaced: Vec<_> = resolver.findings().filter(is_replaced).collect();
    if let [first, rest @ ..] = replaced.as_slice() {
        context.warn(first.problem);
        let others = and_other_files(rest.len());
        let place = place_of_copy(first.problem, context);
        context.note(format_args!(
            "hint: its functions{others} are shown as addresses; add the recorded files with 'buildid-cache --add'{place}"
        ));
    }
    for finding in resolver.always_reported_findings() {
        context.warn(finding);
        if let SymbolFinding::Untrusted { path } = finding {
            context.note(format_args!(
                "hint: chown the file to the current user or root if it can be trusted: {}",
                path.display()
            ));
        }
    }
    for finding in resolver.debug_findings() {
        context.warn(finding);
    }
    for note in missing_names::notes(resolver) {
        context.note(note);
    }
}

/// Describes records that could not be decoded; `noun` is `record` or `sample`.
fn bad_records(errors: &DecodeErrors, first: &BadRecord, noun: &str, path: &Path) -> String {
    let BadRecord {
        offset,
        kind,
        error,
    } = first;
    format!(
        "{}: {} cannot be decoded; the first, {kind} ({}) at offset {offset:#x}: {error}",
        path.display(),
        counted(errors.count, noun),
        kind.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_file_is_another_file() {
        let texts = [0, 1, 2].map(and_other_files);
        assert_eq!(
            texts,
            [
                "",
                " and those of another file",
                " and those of 2 other files"
            ]
        );
    }
}
