//! Probe events that a command creates for its run: those of `--probe`, and those of USDT markers in `-e` if they do not exist
//! yet.

use clap::{Arg, ArgMatches};
use rperf_names::{is_pattern, matches_pattern};
use rperf_sys::Tracefs;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::list;
use crate::cli::shared::probing::ParserEvents;

/// The separators of an event list.
const SEPARATORS: [char; 4] = [',', '{', '}', ' '];

/// The `--probe` option.
pub(crate) fn option() -> Arg {
    list("probe", "[program:]definition").help(
        "add a probe event for this run only: './calc:middle it->val', 'libc.so.6:malloc size=%di', 'vfs_read'",
    )
}

/// Creates the events of `--probe`, and those of USDT markers in `-e` if they do not exist yet. Returns one item for each `-e`
/// (its text, with the new events for markers) and `--probe` (its events), with the index that clap gives to the value, in the
/// order of the command line.
pub(crate) fn create_probe_events(
    matches: &ArgMatches,
    context: &Context,
    tracefs: &Tracefs,
) -> Result<Vec<(usize, ParserEvents)>, CliError> {
    let given = |id: &str| {
        let values = matches.get_many::<String>(id).into_iter().flatten();
        let indices = matches.indices_of(id).into_iter().flatten();
        let all: Vec<(usize, &String)> = indices.zip(values).collect();
        all
    };
    let mut all = Vec::new();
    for (index, text) in given("event") {
        all.push((
            index,
            ParserEvents::Text(with_marker_events(text, tracefs, context)?),
        ));
    }
    for (index, definition) in given("probe") {
        all.push((index, context.probes.define(definition, context)?));
    }
    all.sort_by_key(|(index, _)| *index);
    Ok(all)
}

/// Returns the list with the names of markers replaced by the events created for them. All other words stay in the
/// list: the parser of event lists reports unknown markers with all other unknown names.
fn with_marker_events(
    text: &str,
    tracefs: &Tracefs,
    context: &Context,
) -> Result<String, CliError> {
    refuse_values(text)?;
    let mut expanded = String::new();
    for part in text.split_inclusive(SEPARATORS) {
        let word = part.trim_end_matches(SEPARATORS);
        match marker_events(word, tracefs, context)? {
            Some(names) => {
                expanded.push_str(&names);
                expanded.push_str(part.get(word.len()..).unwrap_or_default());
            }
            None => expanded.push_str(part),
        }
    }
    Ok(expanded)
}

/// Refuses `%SYSTEM:EVENT NAME=VALUE`: values belong to the definition of an event, which `--probe` takes and `-e` does not.
fn refuse_values(text: &str) -> Result<(), CliError> {
    let is_marker = |word: &str| word.starts_with('%') || word.starts_with("sdt_");
    let Some((marker, values)) = text.split_once(' ').filter(|(word, _)| is_marker(word)) else {
        return Ok(());
    };
    if !values.contains('=') {
        return Ok(());
    }
    let error = CliError::usage(format!("-e takes no values of markers: '{values}'"));
    let marker = marker.trim_start_matches('%');
    Err(error.hint(format!(
        "define the event for this run: --probe 'PROGRAM:%{marker} {values}'"
    )))
}

/// Creates the events for a word of the form `[%]SYSTEM:EVENT[:MODIFIERS]` and returns their names; without `%`, SYSTEM must
/// start with `sdt_`. `None` if the event exists (for a pattern: any matching event), if the build-id cache does not have the
/// marker, or if the word has another form.
fn marker_events(
    word: &str,
    tracefs: &Tracefs,
    context: &Context,
) -> Result<Option<String>, CliError> {
    let plain = word.strip_prefix('%').unwrap_or(word);
    let is_marker = word.starts_with('%') || word.starts_with("sdt_");
    let Some((system, rest)) = plain.split_once(':') else {
        return Ok(None);
    };
    if !is_marker {
        return Ok(None);
    }
    let (event, modifiers) = match rest.split_once(':') {
        Some((event, modifiers)) => (event, format!(":{modifiers}")),
        None => (rest, String::new()),
    };
    if event.is_empty() || event_exists(system, event, tracefs) {
        return Ok(None);
    }
    let marker = format!("%{system}:{event}");
    if !context.probes.has_cached_event(&marker, context) {
        return Ok(None);
    }
    // The words of a `probe` command.
    let names = context.probes.make(&["--add", &marker], context)?;
    let names = names.into_iter().map(|name| name + &modifiers);
    Ok(Some(names.collect::<Vec<_>>().join(",")))
}

fn event_exists(system: &str, event: &str, tracefs: &Tracefs) -> bool {
    match is_pattern(system) || is_pattern(event) {
        false => tracefs.id(system, event).is_ok(),
        true => tracefs
            .systems()
            .unwrap_or_default()
            .iter()
            .filter(|name| matches_pattern(system, name))
            .flat_map(|name| tracefs.event_names(name).unwrap_or_default())
            .any(|name| matches_pattern(event, &name)),
    }
}
