//! `--add`: events made, all of them or none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::ArgMatches;
use rperf_probe::{Definition, Event, Target, distinct_name, parse};
use rperf_sys::Signals;

use super::args::Given;
use super::cached::Addition;
use super::own::HELD;
use super::tables::{KERNEL, PROGRAMS, Tables};
use super::target::{Subject, is_readable_word};
use super::{Defined, NOT_FOUND, blacklist, cached, events, on, tracepoint};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The status of perf for EEXIST.
pub(super) const EXISTS: u8 = 239;

/// An event with what is said of it.
struct New {
    event: Event,
    /// `(on PLACE in OBJECT with ARGUMENTS)`.
    told: String,
}

/// Adds the events of all definitions.
pub(super) fn run(
    added: &[Given],
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
    let defined = added.iter().map(|given| events(given, matches, context));
    let defined = defined.collect::<Result<Vec<_>, _>>()?;
    let is_dry = on(matches, "dry-run");
    let tables = Tables::find(context);
    let _alone = tables.lock();
    let existing = match tables.existing() {
        Err(_) if is_dry => Vec::new(),
        existing => existing?,
    };
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (event, _) in existing {
        names.entry(event.group).or_default().insert(event.name);
    }
    let is_kept = on(matches, "cache");
    let additions = match is_kept {
        true => additions(&defined)?,
        false => Vec::new(),
    };
    let mut new = Vec::new();
    for defined in defined {
        name(defined, on(matches, "force"), &mut names, &mut new)?;
    }
    let is_verbose = context.verbosity(matches) > 0;
    for New { event, .. } in new.iter().filter(|_| is_verbose) {
        context.note(format_args!("Writing event: {event}"));
    }
    if !is_dry {
        let created = create(&tables, &new, context);
        created.map_err(|error| match tables.has(KERNEL) {
            true => error,
            false => instead(error, added, context),
        })?;
    }
    if is_kept {
        cached::keep(additions, context)?;
    }
    let done = match (is_dry, is_kept) {
        (false, _) => "Added",
        (true, false) => "Would add",
        (true, true) => "Cached",
    };
    tell(&new, done, context);
    Ok(())
}

/// What the cache keeps of the events, by their names before these are made distinct.
fn additions(defined: &[Defined]) -> Result<Vec<Addition>, CliError> {
    let of = |defined: &Defined| {
        let events = defined.events.iter().map(|(event, _)| event.clone());
        let events: Vec<Event> = events.collect();
        Addition::new(&defined.definition, defined.home.as_ref(), &events)
    };
    defined.iter().map(of).collect()
}

/// The same error of a kernel without probes of its own, with the tracepoints that may do as well.
fn instead(error: CliError, added: &[Given], context: &Context) -> CliError {
    let in_kernel = added
        .iter()
        .filter(|given| !matches!(given.target, Subject::Program(_)));
    let definitions = in_kernel.filter_map(|given| parse(&given.definition).ok());
    definitions.fold(error, |error, definition| {
        tracepoint::beside(error, &definition, context)
    })
}

/// Gives the events of one definition names that are still free.
fn name(
    defined: Defined,
    force: bool,
    names: &mut BTreeMap<String, BTreeSet<String>>,
    new: &mut Vec<New>,
) -> Result<(), CliError> {
    let Defined {
        definition, events, ..
    } = defined;
    for (index, (mut event, place)) in events.into_iter().enumerate() {
        let taken = names.entry(event.group.clone()).or_default();
        // One definition may stand for several places, which then share a name.
        if taken.contains(&event.name) && !force && index == 0 {
            return Err(exists(&event.name));
        }
        let name = distinct_name(&event.name, taken);
        event.name = name.ok_or_else(|| {
            CliError::message(EXISTS, format!("Too many events are named {}.", event.name))
        })?;
        taken.insert(event.name.clone());
        let told = told(&definition, place.as_deref(), &event.target);
        new.push(New { event, told });
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

pub(super) fn told(definition: &Definition, place: Option<&str>, target: &Target) -> String {
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
        Target::Program { object, .. } => format!(" in {object}"),
        Target::Kernel { module, .. } => {
            let module = module.as_ref().map(|module| format!(" in {module}"));
            module.unwrap_or_default()
        }
    };
    format!("(on {}{at}{within}{with})", definition.point)
}

/// Makes the events; where one is refused, or a signal ends the run, those before it are removed again.
fn create(tables: &Tables, new: &[New], context: &Context) -> Result<(), CliError> {
    let signals = Signals::hold(&HELD).map_err(anyhow::Error::new)?;
    let came = || signals.next().ok().flatten();
    for (index, New { event, .. }) in new.iter().enumerate() {
        let before = new.get(..index).unwrap_or_default();
        if let Some(signal) = came() {
            for name in remove(tables, before) {
                context.warn(format_args!("{name} could not be removed again"));
            }
            drop(signals);
            rperf_sys::die_by(signal);
            return Err(CliError::message(NOT_FOUND, "interrupted"));
        }
        let Err(error) = tables.write(list_of(event), &event.to_string()) else {
            continue;
        };
        let said = [blacklist::about(event), unreadable(event)];
        let error = said.into_iter().flatten().fold(error, CliError::hint);
        let left = remove(tables, before);
        let error = match before.len() - left.len() {
            0 => error,
            1 => error.hint("the event added before it was removed again"),
            count => error.hint(format!(
                "the {count} events added before it were removed again"
            )),
        };
        return Err(match left.as_slice() {
            [] => error,
            names => error.hint(format!(
                "{} could not be removed again and may be in use",
                names.join(", ")
            )),
        });
    }
    Ok(())
}

/// Takes events away that were added in vain; the names of those that stay.
fn remove(tables: &Tables, new: &[New]) -> Vec<String> {
    let events = new.iter().map(|new| &new.event);
    let stays = |event: &&Event| tables.try_write(list_of(event), &event.removal()).is_err();
    events.filter(stays).map(Event::full_name).collect()
}

/// What is wrong with the path of the program, and the way out.
fn unreadable(event: &Event) -> Option<String> {
    let Target::Program { object, .. } = &event.target else {
        return None;
    };
    let is_readable = is_readable_word(Path::new(object));
    (!is_readable).then(|| {
        format!(
            "the kernel takes no path with blanks or '#'; a link without them will do: 'ln -s \"{object}\" /tmp/link', then -x /tmp/link"
        )
    })
}

/// The list that an event belongs to.
pub(super) fn list_of(event: &Event) -> &'static str {
    match event.target {
        Target::Program { .. } => PROGRAMS,
        Target::Kernel { .. } => KERNEL,
    }
}

fn tell(new: &[New], done: &str, context: &Context) {
    let Some(last) = new.last() else {
        return;
    };
    let several = if new.len() > 1 { "s" } else { "" };
    context.note(format_args!("{done} new event{several}:"));
    for New { event, told } in new {
        let name = format!("{}:{}", event.group, event.name);
        context.note(format_args!("  {name:<20} {told}"));
    }
    if done == "Added" {
        let Event { group, name, .. } = &last.event;
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
