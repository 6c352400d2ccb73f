//! `--del`: removes events.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ArgMatches;
use rperf_names::matches_pattern;
use rperf_probe::{ExistingEvent, ExistingTarget};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::shared::probing::event_lists::EventLists;
use crate::cli::shared::probing::place_messages::FAILED;
use crate::cli::shared::probing::running_kernel::module_name;
use crate::cli::shared::probing::target::{ProbedObject, resolved_target};
use crate::cli::shared::probing::{is_on, probe_cache};

/// Removes the events that match the patterns, and prints their names; with `--dry-run`, only prints them. If a pattern matches
/// no event, nothing is removed. With `--cache`, the events stored in the build-id cache are removed instead.
pub(super) fn run(
    patterns: &[&String],
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
    let within = resolved_target(matches, context)?;
    let is_dry = is_on(matches, "dry-run");
    if is_on(matches, "cache") {
        return probe_cache::delete(patterns, &within, is_dry, context);
    }
    let lists = EventLists::find(context);
    let existing = lists.existing()?;
    // Keyed by name, so that an event that several patterns match is removed once. The values are the line that removes the
    // event, and its list (`kprobe_events` or `uprobe_events`).
    let mut matching = BTreeMap::new();
    for pattern in patterns {
        let full_pattern_text = full_pattern(pattern);
        let mut hits = existing
            .iter()
            .filter(|(event, _)| is_in(event, &within))
            .filter(|(event, _)| matches_pattern(&full_pattern_text, &event.full_name()))
            .peekable();
        if hits.peek().is_none() {
            let error = format!("\"{pattern}\" does not hit any event.");
            return Err(CliError::message(FAILED, error)
                .detail("  Error: Failed to delete events.")
                .hint(format!("'{} probe -l' lists probe events", context.program)));
        }
        matching.extend(hits.map(|(event, list)| (event.full_name(), (event.removal(), *list))));
    }
    // The first failure is the error of the command; later ones are warnings.
    let mut failure = None;
    for (name, (removal, list)) in matching {
        if is_dry {
            context.note(format_args!("Would remove event: {name}"));
            continue;
        }
        match lists.try_write(list, &removal) {
            Ok(()) => context.note(format_args!("Removed event: {name}")),
            Err(error) if failure.is_none() => {
                failure = Some(lists.removal_error(&error, list, &name));
            }
            Err(error) => context.warn(format_args!("{name} remains: {}", reason(&error))),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Whether an event is in the program or module `object`. If `object` is the kernel, always true: without `-x` and
/// `-m`, the events of all objects are meant.
pub(super) fn is_in(event: &ExistingEvent, object: &ProbedObject) -> bool {
    match (object, &event.target) {
        (ProbedObject::Kernel, _) => true,
        (ProbedObject::Program(program), ExistingTarget::File { path, .. }) => {
            Path::new(path) == program
        }
        (ProbedObject::Module(module), ExistingTarget::Kernel(place)) => {
            let event_module = place.split_once(':').map(|(name, _)| name);
            event_module == Some(module_name(module).as_str())
        }
        _ => false,
    }
}

/// Returns the pattern for GROUP:NAME: a pattern without a group gets the group `*`.
pub(super) fn full_pattern(pattern: &str) -> String {
    match pattern.contains(':') {
        true => pattern.to_owned(),
        false => format!("*:{pattern}"),
    }
}
