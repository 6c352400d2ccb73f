//! Messages about definitions and their probe points.

use rperf_names::counted;
use rperf_probe::{Error, SearchNote, SyntaxError};

use crate::cli::error::CliError;

/// Exit status of most failures, as perf's for ENOENT.
pub(crate) const FAILED: u8 = 254;
/// perf's exit status for EEXIST.
pub(crate) const EXISTS: u8 = 239;

/// Formats an error as perf does: what is wrong, `  Error: Failed to …` with the `action`, and hints.
pub(crate) fn problem(error: &Error, action: &str) -> CliError {
    let message = CliError::message(FAILED, error.to_string());
    let message = error.details().into_iter().fold(message, CliError::detail);
    let message = message.detail(format!("  Error: Failed to {action}."));
    let hints = error.hints();
    hints.into_iter().fold(message, CliError::hint)
}

/// The error for a syntax error in `text`, with its position marked.
pub(crate) fn syntax_error(fault: SyntaxError, text: &str) -> CliError {
    let lines = fault.with_marker(text);
    lines
        .into_iter()
        .fold(CliError::usage(fault.message), CliError::detail)
}

/// Formats a note of a search, in one or more lines.
pub(crate) fn note(note: &SearchNote) -> Vec<String> {
    let line = match note {
        SearchNote::SkippedPrologue { address } => {
            return vec![
                "Target program is compiled without optimization. Skipping prologue.".to_owned(),
                format!("Probe on address {address:#x} to force probing at the function entry."),
                String::new(),
            ];
        }
        SearchNote::Incomplete { argument, places } => {
            format!(
                "'{argument}' has no location at {places} of the probe points, which record 0xdeade12d instead"
            )
        }
        SearchNote::Truncated { argument } => {
            format!("'{argument}' exceeds max-bitwidth. Cut down to 64 bits.")
        }
        SearchNote::Indirect { name, variants } => {
            let which = match variants.as_slice() {
                [] => String::new(),
                // The note has only some of the implementations, hence the ellipsis.
                variants => format!(" ({}, …)", variants.join(", ")),
            };
            format!(
                "Warning: {name} is an indirect function: the function that runs is chosen when a program starts. Probe its implementation{which}."
            )
        }
        SearchNote::MissingSplit { units } => {
            format!(
                "the .dwo files of {} are missing: functions and variables in them are not found",
                counted(*units as u64, "compile unit")
            )
        }
    };
    vec![line]
}
