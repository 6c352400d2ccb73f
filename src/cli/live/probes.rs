//! Events that a recording makes for itself: `--probe`, and marked places of programs that nobody has added yet.

use clap::{Arg, ArgMatches};
use rperf_events::{is_pattern, matches_pattern};
use rperf_sys::Tracefs;

use crate::cli::commands::probe::Wanted;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::list;

/// What separates the events of a list.
const SEPARATORS: [char; 4] = [',', '{', '}', ' '];

/// `--probe`.
pub(crate) fn option() -> Arg {
    list("probe", "[program:]definition").help(
        "make an event as 'probe' does, for this run only: './calc:middle it->val', 'libc.so.6:malloc size=%di', 'vfs_read'",
    )
}

/// What `-e` and `--probe` ask for, each with its place among the words, in their order. What they name for the first time is made.
pub(crate) fn wanted(
    matches: &ArgMatches,
    context: &Context,
    tracefs: &Tracefs,
) -> Result<Vec<(usize, Wanted)>, CliError> {
    let given = |id: &str| {
        let values = matches.get_many::<String>(id).into_iter().flatten();
        let places = matches.indices_of(id).into_iter().flatten();
        let all: Vec<(usize, &String)> = places.zip(values).collect();
        all
    };
    let mut all = Vec::new();
    for (index, text) in given("event") {
        all.push((index, Wanted::Text(with_marks(text, tracefs, context)?)));
    }
    for (index, definition) in given("probe") {
        all.push((index, context.probes.define(definition, context)?));
    }
    all.sort_by_key(|(index, _)| *index);
    Ok(all)
}

/// The same list with the names of the events that are made for it. Words of which neither the kernel nor the cache knows stay:
/// they are explained with all others.
fn with_marks(text: &str, tracefs: &Tracefs, context: &Context) -> Result<String, CliError> {
    let mut whole = String::new();
    for part in text.split_inclusive(SEPARATORS) {
        let word = part.trim_end_matches(SEPARATORS);
        match made(word, tracefs, context)? {
            Some(names) => {
                whole.push_str(&names);
                whole.push_str(part.get(word.len()..).unwrap_or_default());
            }
            None => whole.push_str(part),
        }
    }
    Ok(whole)
}

/// The events that stand for a word of the form `[%]SYSTEM:EVENT[:MODIFIERS]`, if it is to be made.
fn made(word: &str, tracefs: &Tracefs, context: &Context) -> Result<Option<String>, CliError> {
    let plain = word.strip_prefix('%').unwrap_or(word);
    let is_marked = word.len() > plain.len() || plain.starts_with("sdt_");
    let Some((system, rest)) = plain.split_once(':').filter(|_| is_marked) else {
        return Ok(None);
    };
    let (event, modifiers) = match rest.split_once(':') {
        Some((event, modifiers)) => (event, format!(":{modifiers}")),
        None => (rest, String::new()),
    };
    if event.is_empty() || is_there(system, event, tracefs) {
        return Ok(None);
    }
    let asked = format!("%{system}:{event}");
    if !context.probes.are_cached(&asked, context) {
        return Ok(None);
    }
    let names = context.probes.make(&["--add", &asked], context)?;
    let names = names.into_iter().map(|name| name + &modifiers);
    Ok(Some(names.collect::<Vec<_>>().join(",")))
}

fn is_there(system: &str, event: &str, tracefs: &Tracefs) -> bool {
    match is_pattern(system) || is_pattern(event) {
        false => tracefs.id(system, event).is_ok(),
        true => tracefs
            .systems()
            .unwrap_or_default()
            .iter()
            .filter(|own| matches_pattern(system, own))
            .flat_map(|own| tracefs.names(own).unwrap_or_default())
            .any(|name| matches_pattern(event, &name)),
    }
}
