//! Creates probe events from definitions: for `probe`, and for the options of other commands that create temporary events.

pub(crate) mod args;
pub(crate) mod event_lists;
pub(crate) mod place_messages;
pub(crate) mod probe_cache;
pub(crate) mod running_kernel;
pub(crate) mod target;
mod targets;
mod temporary_events;
mod uprobe_pmu;

use std::collections::BTreeSet;
use std::path::Path;

use clap::ArgMatches;
use rperf_probe::{
    Definition, Error, KERNEL_GROUP, Point, Probe, ProbeEvent, ProbeTarget, SearchOptions,
    base_name, find, group_of, group_of_provider, parse,
};

use self::args::ProbeSpec;
use self::event_lists::EventLists;
use self::place_messages::{problem, syntax_error};
use self::probe_cache::CachedObject;
use self::running_kernel::ResolvedProbes;
use self::target::{OpenedObject, ProbedBinary};
pub(crate) use self::targets::of as targets_of;
pub(crate) use self::temporary_events::{BLOCKED_SIGNALS, OwnProbes, ParserEvents};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The result of one definition.
pub(crate) struct DefinitionResult {
    pub(crate) definition: Definition,
    /// The probed object in the build-id cache; the last one if there are several. `None` if the cache cannot store its events.
    pub(crate) cache_entry: Option<CachedObject>,
    /// The events; each with its place if several places of one object were found.
    pub(crate) events: Vec<(ProbeEvent, Option<String>)>,
}

/// Returns the events at the places of a definition. Their names are not unique yet.
pub(crate) fn events(
    given: &ProbeSpec,
    matches: &ArgMatches,
    context: &Context,
) -> Result<DefinitionResult, CliError> {
    let text = &given.definition;
    let definition = parse(text).map_err(|fault| syntax_error(fault, text))?;
    let mut events = Vec::new();
    let mut cache_entry = None;
    for target in targets::of(given, &definition, context)? {
        let opened = OpenedObject::open(&target, matches, context)?;
        cache_entry = CachedObject::of(&opened);
        let entry = cache_entry.as_ref();
        let cached =
            entry.and_then(|entry| cached_events(entry, &opened, &definition, matches, context));
        if let Some(cached) = cached {
            events.extend(cached.into_iter().map(|event| (event, None)));
            continue;
        }
        // A point `%[GROUP:]NAME` may name cached events, a USDT probe, or both.
        let cached_by_name = entry.map(|entry| entry.events_called(&definition.point, context));
        let cached_by_name = cached_by_name.unwrap_or_default();
        match find_places(&opened, &definition, matches, context) {
            Ok(places) => events.extend(events_at(places, &definition, context)),
            // The name may be that of cached events only, not of a USDT probe.
            Err(_) if !cached_by_name.is_empty() => {}
            Err(error) => return Err(error),
        }
        events.extend(probe_cache::renamed(cached_by_name, &definition)?);
    }
    Ok(DefinitionResult {
        definition,
        cache_entry,
        events,
    })
}

/// Finds the places of a definition in one object.
fn find_places(
    opened: &OpenedObject,
    definition: &Definition,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ResolvedProbes, CliError> {
    let options = args::search_options(matches, context)?;
    match opened {
        OpenedObject::Kernel(kernel) => kernel.find(definition, &options),
        OpenedObject::Program(binary) => in_program(binary, definition, &options).map_err(|error| {
            let message = problem(&error, "add events");
            let message = match is_stripped_function(&error, definition, binary) {
                true => message.hint(format!(
                    "{} is stripped: only exported functions have names; its debug file has the others",
                    binary.path().display()
                )),
                false => message,
            };
            match inlined_places(binary, definition, &options) {
                Some(places) => message.hint(format!(
                    "the function is inlined at {places}; omit --no-inlines to probe it there"
                )),
                None => message,
            }
        }),
    }
}

/// Whether a function was not found in a stripped program.
fn is_stripped_function(error: &Error, definition: &Definition, binary: &ProbedBinary) -> bool {
    let is_function = matches!(definition.point, Point::Function { .. });
    let is_missing = is_function && matches!(error, Error::NoPoint { .. });
    is_missing && binary.object().is_ok_and(|object| object.is_stripped())
}

/// For a definition whose search with `--no-inlines` has failed: returns the inlined places that the search without it finds, as
/// text. `None` if the option is not given, or if there are none.
fn inlined_places(
    binary: &ProbedBinary,
    definition: &Definition,
    options: &SearchOptions,
) -> Option<String> {
    if options.inlines {
        return None;
    }
    let options = SearchOptions {
        inlines: true,
        ..options.clone()
    };
    let places = in_program(binary, definition, &options).ok()?;
    let places: Vec<String> = places.points.probes.iter().map(location).collect();
    Some(places.join(", "))
}

/// With `--cache`, returns the cached events of the same definition, even if the debug information no longer exists. `None`
/// without `--cache`, if an option of the search is given (`--max-probes`, `--[no-]inlines`), or if the cache has no events of
/// the definition.
fn cached_events(
    cache_entry: &CachedObject,
    opened: &OpenedObject,
    definition: &Definition,
    matches: &ArgMatches,
    context: &Context,
) -> Option<Vec<ProbeEvent>> {
    let has_search_options = matches.contains_id("max-probes") || matches.contains_id("inlines");
    if !is_on(matches, "cache") || has_search_options {
        return None;
    }
    cache_entry.events_for(definition, &opened.group(), context)
}

/// Returns the events for the places in one object, and prints the notes on the places.
fn events_at(
    places: ResolvedProbes,
    definition: &Definition,
    context: &Context,
) -> Vec<(ProbeEvent, Option<String>)> {
    let ResolvedProbes { points, targets } = places;
    for note in &points.notes {
        for line in place_messages::note(note) {
            context.note(line);
        }
    }
    let group =
        |probe: &Probe, target: &ProbeTarget| match (&definition.group, &probe.provider, target) {
            (Some(group), ..) => group.clone(),
            (None, Some(provider), _) => group_of_provider(provider),
            (None, None, target) => default_group(target),
        };
    let several = points.probes.len() > 1;
    let events = points.probes.iter().zip(targets).map(|(probe, target)| {
        let event = ProbeEvent {
            group: group(probe, &target),
            name: base_name(definition, probe),
            target,
            is_return: probe.is_return,
            fields: probe.fields.clone(),
        };
        (event, several.then(|| location(probe)))
    });
    events.collect()
}

/// Returns the default group of events.
fn default_group(target: &ProbeTarget) -> String {
    match target {
        ProbeTarget::Program { object, .. } => group_of(Path::new(object)),
        ProbeTarget::Kernel { .. } => KERNEL_GROUP.to_owned(),
    }
}

/// Finds the places in a program or library.
fn in_program(
    binary: &ProbedBinary,
    definition: &Definition,
    options: &SearchOptions,
) -> Result<ResolvedProbes, Error> {
    let points = find(&binary.object()?, definition, options)?;
    let object = binary.path().to_string_lossy();
    let targets = points.probes.iter().map(|probe| ProbeTarget::Program {
        object: object.clone().into_owned(),
        file_offset: probe.file_offset,
        semaphore: probe.semaphore,
    });
    let targets = targets.collect();
    Ok(ResolvedProbes { points, targets })
}

/// Formats the location of a probe, such as `middle+12 (inlined)`.
fn location(probe: &Probe) -> String {
    let inlined = if probe.is_inlined { " (inlined)" } else { "" };
    match probe.offset {
        0 => format!("{}{inlined}", probe.symbol),
        offset => format!("{}+{offset}{inlined}", probe.symbol),
    }
}

/// Returns the names of existing probe events (`GROUP:EVENT`); empty if the lists cannot be read.
pub(crate) fn existing_names(context: &Context) -> BTreeSet<String> {
    let existing = EventLists::find(context).existing().unwrap_or_default();
    existing
        .iter()
        .map(|(event, _)| event.full_name())
        .collect()
}

/// Whether a switch is on.
pub(crate) fn is_on(matches: &ArgMatches, name: &str) -> bool {
    flag(matches, name) == Some(true)
}

/// Formats `(on POINT at PLACE in OBJECT with ARGUMENTS)`.
pub(crate) fn described(
    definition: &Definition,
    place: Option<&str>,
    target: &ProbeTarget,
) -> String {
    let at = place
        .map(|place| format!(" at {place}"))
        .unwrap_or_default();
    let arguments: Vec<&str> = definition
        .arguments
        .iter()
        .map(|argument| argument.text.as_str())
        .collect();
    let with = match arguments.as_slice() {
        [] => String::new(),
        arguments => format!(" with {}", arguments.join(" ")),
    };
    let within = match target {
        ProbeTarget::Program { object, .. } => format!(" in {object}"),
        ProbeTarget::Kernel { module, .. } => {
            let module = module.as_ref().map(|module| format!(" in {module}"));
            module.unwrap_or_default()
        }
    };
    format!("(on {}{at}{within}{with})", definition.point)
}
