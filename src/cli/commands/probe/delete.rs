//! `--del`: events removed.

use std::collections::BTreeMap;

use rperf_events::matches_pattern;

use super::NOT_FOUND;
use super::tables::Tables;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Removes the events that the patterns cover, and says which.
pub(super) fn run(patterns: &[&String], context: &Context) -> Result<(), CliError> {
    let tables = Tables::find(context);
    let existing = tables.existing()?;
    let mut doomed = BTreeMap::new();
    for pattern in patterns {
        let whole = whole(pattern);
        let mut hits = existing
            .iter()
            .filter(|(event, _)| matches_pattern(&whole, &event.full_name()))
            .peekable();
        if hits.peek().is_none() {
            let error = format!("\"{pattern}\" does not hit any event.");
            return Err(
                CliError::message(NOT_FOUND, error).detail("  Error: Failed to delete events.")
            );
        }
        doomed.extend(hits.map(|(event, list)| (event.full_name(), (event.removal(), *list))));
    }
    for (name, (removal, list)) in doomed {
        tables
            .write(list, &removal)
            .map_err(|error| error.hint(format!("{name} may be in use by a recording")))?;
        context.note(format_args!("Removed event: {name}"));
    }
    Ok(())
}

/// The pattern for group and name; one word is a name in any group.
pub(super) fn whole(pattern: &str) -> String {
    match pattern.contains(':') {
        true => pattern.to_owned(),
        false => format!("*:{pattern}"),
    }
}
