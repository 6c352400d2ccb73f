//! `--del`: events removed.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ArgMatches;
use rperf_events::matches_pattern;
use rperf_probe::{Existing, ExistingPlace};

use super::running::module_name;
use super::tables::Tables;
use super::target::{Subject, named};
use super::{NOT_FOUND, cached, on};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;

/// Removes the events that the patterns cover, and says which.
pub(super) fn run(
    patterns: &[&String],
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
    let within = named(matches, context)?;
    let is_dry = on(matches, "dry-run");
    if on(matches, "cache") {
        return cached::delete(patterns, &within, is_dry, context);
    }
    let tables = Tables::find(context);
    let existing = tables.existing()?;
    let mut doomed = BTreeMap::new();
    for pattern in patterns {
        let whole = whole(pattern);
        let mut hits = existing
            .iter()
            .filter(|(event, _)| is_in(event, &within))
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
    let mut failure = None;
    for (name, (removal, list)) in doomed {
        if is_dry {
            context.note(format_args!("Would remove event: {name}"));
            continue;
        }
        match tables.try_write(list, &removal) {
            Ok(()) => context.note(format_args!("Removed event: {name}")),
            Err(error) if failure.is_none() => {
                failure = Some(tables.unremoved(&error, list, &name));
            }
            Err(error) => context.warn(format_args!("{name} is left: {}", reason(&error))),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Whether an event is in the program or module that is named; all are where none is.
pub(super) fn is_in(event: &Existing, named: &Subject) -> bool {
    match (named, &event.place) {
        (Subject::Kernel, _) => true,
        (Subject::Program(program), ExistingPlace::File { path, .. }) => Path::new(path) == program,
        (Subject::Module(module), ExistingPlace::Kernel(place)) => {
            let own = place.split_once(':').map(|(own, _)| own);
            own == Some(module_name(module).as_str())
        }
        _ => false,
    }
}

/// The pattern for group and name; one word is a name in any group.
pub(super) fn whole(pattern: &str) -> String {
    match pattern.contains(':') {
        true => pattern.to_owned(),
        false => format!("*:{pattern}"),
    }
}
