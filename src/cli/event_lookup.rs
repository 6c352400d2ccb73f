//! Lookup of an event by name, and the event drawn in a chart.

use std::cmp::Reverse;
use std::path::Path;

use rperf_events::split_modifiers;
use rperf_names::counted;
use rperf_replay::Replay;

use super::context::Context;
use super::error::CliError;

/// The event of `record --off-cpu`: its periods are the nanoseconds that a task waited.
const OFF_CPU: &str = "offcpu-time";

/// Whether this is the event of `record --off-cpu`.
pub(crate) fn is_off_cpu(name: &str) -> bool {
    is_named(name, OFF_CPU)
}

/// Returns the index of the event to draw: the event `given` if any, otherwise off-CPU time if it has samples, otherwise the
/// event with most samples. Prints a note if no event is given and others have samples, too.
///
/// # Errors
///
/// Those of [`find_event`]; also a recording without samples.
pub(crate) fn drawn_event(
    replay: &Replay<'_>,
    path: &Path,
    given: Option<&str>,
    context: &Context,
) -> Result<usize, CliError> {
    if let Some(given) = given {
        return find_event(replay, path, given);
    }
    let events = replay.data().events();
    let sampled = events.iter().zip(replay.sample_counts()).enumerate();
    let sampled: Vec<_> = sampled.filter(|(_, (_, samples))| **samples > 0).collect();
    let weight = |(index, (event, samples)): &(usize, (&rperf_perfdata::EventDesc, &u64))| {
        (is_off_cpu(&event.name), **samples, Reverse(*index))
    };
    let Some((drawn, (event, samples))) = sampled.iter().copied().max_by_key(weight) else {
        let message = format!("The {} data has no samples!", path.display());
        return Err(CliError::message(255, message));
    };
    let others = sampled.iter().filter(|(index, _)| *index != drawn);
    let others: Vec<String> = others
        .map(|(_, (event, samples))| format!("{} ({samples})", event.name))
        .collect();
    if !others.is_empty() {
        context.note(format_args!(
            "using the {} of {}; not used: {}",
            counted(*samples, "sample"),
            event.name,
            others.join(", ")
        ));
        context.note("hint: -e NAME selects another event");
    }
    Ok(drawn)
}

/// Returns the index of the first event named `requested`, with or without its modifiers.
///
/// # Errors
///
/// Status 255: the recording has no such event; the hint lists its events.
pub(crate) fn find_event(
    replay: &Replay<'_>,
    path: &Path,
    requested: &str,
) -> Result<usize, CliError> {
    let events = replay.data().events();
    let index = events
        .iter()
        .position(|event| is_named(&event.name, requested));
    index.ok_or_else(|| {
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let message = format!("{} has no event '{requested}'", path.display());
        CliError::message(255, message).hint(format!("its events: {}", names.join(", ")))
    })
}

/// Whether an event has this name, with or without its modifiers.
fn is_named(name: &str, wanted: &str) -> bool {
    name == wanted || split_modifiers(name).is_some_and(|(bare, _)| bare == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_may_be_omitted_but_names_of_tracepoints_may_not() {
        assert!(is_named("cycles:up", "cycles") && is_named("cycles:up", "cycles:up"));
        assert!(is_named("sched:sched_switch:u", "sched:sched_switch"));
        assert!(is_named("cycles:b", "cycles") && is_named("cycles:R", "cycles"));
        assert!(!is_named("sched:sched_switch", "sched"));
        // Modifiers are given as in the recording, or not at all.
        assert!(!is_named("cycles:up", "cycles:u"));
    }
}
