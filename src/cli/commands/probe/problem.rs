//! What is said of places that are not found, and of those that are.

use rperf_probe::{Error, Fault, Note};

use super::NOT_FOUND;
use crate::cli::error::CliError;

/// The error as perf's users know it: what is wrong, `  Error: Failed to …`, and the way out.
pub(super) fn problem(error: &Error, doing: &str) -> CliError {
    let told = CliError::message(NOT_FOUND, error.to_string());
    let told = error.details().into_iter().fold(told, CliError::detail);
    let told = told.detail(format!("  Error: Failed to {doing}."));
    let hints = error.hints();
    hints.into_iter().fold(told, CliError::hint)
}

/// A mistake in `text`, which is shown with a mark.
pub(super) fn faulty(fault: Fault, text: &str) -> CliError {
    let pointed = fault.pointed(text);
    pointed
        .into_iter()
        .fold(CliError::usage(fault.message), CliError::detail)
}

/// What is worth knowing of places that are found, in one line or several.
pub(super) fn note(note: &Note) -> Vec<String> {
    let line = match note {
        Note::SkippedPrologue { address } => {
            return vec![
                "Target program is compiled without optimization. Skipping prologue.".to_owned(),
                format!("Probe on address {address:#x} to force probing at the function entry."),
                String::new(),
            ];
        }
        Note::Incomplete { argument, places } => {
            format!("'{argument}' is not known at {places} of the places, which record 0xdeade12d")
        }
        Note::Cut { argument } => {
            format!("'{argument}' exceeds max-bitwidth. Cut down to 64 bits.")
        }
        Note::Indirect { name, variants } => {
            let which = match variants.as_slice() {
                [] => String::new(),
                variants => format!(" ({}, …)", variants.join(", ")),
            };
            format!(
                "Warning: {name} is an indirect function: its code chooses the one that runs, when a program starts. Probe that one{which}."
            )
        }
        Note::MissingSplit { units } => {
            format!("the .dwo files of {units} units are missing, and nothing in them is found")
        }
    };
    vec![line]
}
