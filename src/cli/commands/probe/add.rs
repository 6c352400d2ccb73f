//! `--add`: creates events; if one cannot be created, those created before it are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::ArgMatches;
use rperf_probe::{ProbeEvent, ProbeTarget, distinct_name, parse};
use rperf_sys::Signals;

use super::{blacklist, tracepoint};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::shared::probing::args::ProbeSpec;
use crate::cli::shared::probing::event_lists::{EventLists, KPROBE_EVENTS, list_of};
use crate::cli::shared::probing::place_messages::{EXISTS, FAILED};
use crate::cli::shared::probing::probe_cache::CacheAddition;
use crate::cli::shared::probing::target::{ProbedObject, is_single_word};
use crate::cli::shared::probing::{
    BLOCKED_SIGNALS, DefinitionResult, described, events, is_on, probe_cache,
};

/// An event with its description.
struct NewEvent {
    event: ProbeEvent,
    /// The text `(on PLACE in OBJECT with ARGUMENTS)`.
    description: String,
}

/// Adds the events of all definitions.
pub(super) fn run(
    added: &[ProbeSpec],
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
    let defined = added.iter().map(|given| events(given, matches, context));
    let defined = defined.collect::<Result<Vec<_>, _>>()?;
    let is_dry = is_on(matches, "dry-run");
    let lists = EventLists::find(context);
    let _lock = lists.lock();
    let existing = match lists.existing() {
        // A dry run needs no access to the lists: without them, names count as unused.
        Err(_) if is_dry => Vec::new(),
        existing => existing?,
    };
    // The names in use, by group.
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (event, _) in existing {
        names.entry(event.group).or_default().insert(event.name);
    }
    let is_cached = is_on(matches, "cache");
    let additions = match is_cached {
        true => additions(&defined)?,
        false => Vec::new(),
    };
    let mut new = Vec::new();
    for defined in defined {
        assign_names(defined, is_on(matches, "force"), &mut names, &mut new)?;
    }
    let is_verbose = context.verbosity(matches) > 0;
    for NewEvent { event, .. } in new.iter().filter(|_| is_verbose) {
        context.note(format_args!("Writing event: {event}"));
    }
    if !is_dry {
        let created = create(&lists, &new, context);
        created.map_err(|error| match lists.has(KPROBE_EVENTS) {
            true => error,
            false => hint_tracepoints(error, added, context),
        })?;
    }
    if is_cached {
        probe_cache::keep(additions, context)?;
    }
    let verb = match (is_dry, is_cached) {
        (false, _) => "Added",
        (true, false) => "Would add",
        // With --dry-run, --cache stores the events only in the cache.
        (true, true) => "Cached",
    };
    print_added(&new, verb, context);
    Ok(())
}

/// Returns the entries for the cache, which have the names of events before they are made unique.
fn additions(defined: &[DefinitionResult]) -> Result<Vec<CacheAddition>, CliError> {
    let addition = |defined: &DefinitionResult| {
        let events = defined.events.iter().map(|(event, _)| event.clone());
        let events: Vec<ProbeEvent> = events.collect();
        CacheAddition::new(&defined.definition, defined.cache_entry.as_ref(), &events)
    };
    defined.iter().map(addition).collect()
}

/// Adds similar tracepoints to the error as hints. For a kernel whose list of kprobes is missing or cannot be read.
fn hint_tracepoints(error: CliError, added: &[ProbeSpec], context: &Context) -> CliError {
    let in_kernel = added
        .iter()
        .filter(|given| !matches!(given.target, ProbedObject::Program(_)));
    let definitions = in_kernel.filter_map(|given| parse(&given.definition).ok());
    definitions.fold(error, |error, definition| {
        tracepoint::hint_similar(error, &definition, context)
    })
}

/// Gives unused names to the events of one definition, and adds them to `new`. `names` are the names in use, by group. Without
/// `force`, it is an error if the first event's name is in use.
fn assign_names(
    defined: DefinitionResult,
    force: bool,
    names: &mut BTreeMap<String, BTreeSet<String>>,
    new: &mut Vec<NewEvent>,
) -> Result<(), CliError> {
    let DefinitionResult {
        definition, events, ..
    } = defined;
    for (index, (mut event, place)) in events.into_iter().enumerate() {
        let taken = names.entry(event.group.clone()).or_default();
        // A definition with several locations creates several events. As in perf, the later ones get distinct names even without
        // `force`.
        if taken.contains(&event.name) && !force && index == 0 {
            return Err(exists(&event.name));
        }
        let name = distinct_name(&event.name, taken);
        event.name = name.ok_or_else(|| {
            CliError::message(EXISTS, format!("Too many events are named {}.", event.name))
        })?;
        taken.insert(event.name.clone());
        let description = described(&definition, place.as_deref(), &event.target);
        new.push(NewEvent { event, description });
    }
    Ok(())
}

fn exists(name: &str) -> CliError {
    CliError::message(EXISTS, format!("Error: event \"{name}\" already exists."))
        .detail(" Hint: Remove existing event by 'perf probe -d'")
        .detail("       or force duplicates by 'perf probe -f'")
        .detail("       or set 'force=yes' in BPF source.")
        .detail("  Error: Failed to add events.")
}

/// Creates the events; if one is refused, or a signal arrives, those created before are removed if possible.
fn create(lists: &EventLists, new: &[NewEvent], context: &Context) -> Result<(), CliError> {
    let signals = Signals::block(&BLOCKED_SIGNALS).map_err(anyhow::Error::new)?;
    let received = || signals.next().ok().flatten();
    for (index, NewEvent { event, .. }) in new.iter().enumerate() {
        let before = new.get(..index).unwrap_or_default();
        if let Some(signal) = received() {
            for name in remove(lists, before) {
                context.warn(format_args!("{name} could not be removed"));
            }
            // Unblocks the signals.
            drop(signals);
            // Returns only if the signal's default action does not end processes.
            rperf_sys::exit_by_signal(signal);
            // Not reached: the default action of these signals ends processes.
            return Err(CliError::message(FAILED, "interrupted"));
        }
        let Err(error) = lists.write(list_of(event), &event.to_string()) else {
            continue;
        };
        let hints = [blacklist::hint(event), path_hint(event)];
        let error = hints.into_iter().flatten().fold(error, CliError::hint);
        let remaining = remove(lists, before);
        let error = match before.len() - remaining.len() {
            0 => error,
            1 => error.hint("the event that was added before has been removed"),
            count => error.hint(format!(
                "the {count} events that were added before have been removed"
            )),
        };
        // The names of events that are left.
        return Err(match remaining.as_slice() {
            [] => error,
            names => error.hint(format!(
                "{} could not be removed and may be in use",
                names.join(", ")
            )),
        });
    }
    Ok(())
}

/// Removes events that were created before a failure; returns the names of those that can't be removed.
fn remove(lists: &EventLists, created: &[NewEvent]) -> Vec<String> {
    let events = created.iter().map(|new| &new.event);
    let removal_fails =
        |event: &&ProbeEvent| lists.try_write(list_of(event), &event.removal()).is_err();
    events
        .filter(removal_fails)
        .map(ProbeEvent::full_name)
        .collect()
}

/// The hint for a program whose path can't be used in a uprobe definition; `None` for other paths and the kernel. Byte a0, the
/// second one of `à` in UTF-8, is a blank to the kernel, which reads definitions as Latin-1.
fn path_hint(event: &ProbeEvent) -> Option<String> {
    let ProbeTarget::Program { object, .. } = &event.target else {
        return None;
    };
    let is_usable = is_single_word(Path::new(object));
    (!is_usable).then(|| {
        format!(
            "the kernel cannot use a path with spaces, '#' or the byte a0 (as in 'à'); make a link: 'ln -s \"{object}\" /tmp/link', then -x /tmp/link"
        )
    })
}

fn print_added(new: &[NewEvent], verb: &str, context: &Context) {
    let Some(last) = new.last() else {
        return;
    };
    let plural = if new.len() > 1 { "s" } else { "" };
    context.note(format_args!("{verb} new event{plural}:"));
    for NewEvent { event, description } in new {
        let name = format!("{}:{}", event.group, event.name);
        context.note(format_args!("  {name:<20} {description}"));
    }
    if verb == "Added" {
        let ProbeEvent { group, name, .. } = &last.event;
        let program = context.program;
        for line in [
            "",
            "You can now use it in all perf tools, such as:",
            "",
            &format!("\t{program} record -e {group}:{name} -aR sleep 1"),
            "",
        ] {
            context.note(line);
        }
    }
}
