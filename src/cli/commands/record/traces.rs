//! Hardware traces: what is recorded of them, `--snapshot`, and what cannot be.

use clap::ArgMatches;
use rperf_events::{EventSpec, Tracer};
use rperf_session::{Snapshots, Traces};
use rperf_sys::{Sysctl, effective_user};

use super::ring_size;
use super::size::bytes;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::PROC;
use crate::cli::options::{flag, is_given};

/// Options that a trace does not go with, and why.
const NOT_WITH: [(&str, &str); 5] = [
    (
        "overwrite",
        "its records tell where the trace stands; '--snapshot' keeps the end of it",
    ),
    (
        "unwind",
        "what is in areas beside the rings is not rewritten",
    ),
    (
        "off-cpu",
        "what is in areas beside the rings is not rewritten",
    ),
    (
        "tail-synthesize",
        "what describes the trace stands before it",
    ),
    (
        "threads",
        "it is in the rings of threads, which are on no CPU",
    ),
];

/// Refuses those of `events` that are traces nobody here can tell the form of, and several.
pub(super) fn check(events: &[EventSpec]) -> Result<(), CliError> {
    let mut traces = events
        .iter()
        .filter_map(|event| Some((event, event.tracer()?)));
    if let Some((trace, _)) = traces.clone().find(|(_, tracer)| *tracer == Tracer::Other) {
        let message = format!(
            "event {} is a hardware trace of a kind that is not recorded: of these only intel_bts is",
            trace.name
        );
        return Err(CliError::usage(message).hint("'-b' samples the branches taken last"));
    }
    match (traces.next(), traces.next()) {
        (Some(_), Some((second, _))) => Err(CliError::usage(format!(
            "event {}: one hardware trace can be recorded at a time",
            second.name
        ))),
        _ => Ok(()),
    }
}

/// Refuses traces, and the size of areas for them, where nothing is recorded.
pub(in crate::cli::commands) fn refuse(
    matches: &ArgMatches,
    context: &Context,
    events: &[EventSpec],
) -> Result<(), CliError> {
    if let Some(trace) = events.iter().find(|event| event.tracer().is_some()) {
        let message = format!(
            "event {} is a hardware trace, which has no samples to be shown: 'record' records it",
            trace.name
        );
        return Err(CliError::usage(message));
    }
    match ring_size::area_pages(matches, context)? {
        Some(_) => Err(CliError::usage(NONE_IS_TRACE)),
        None => Ok(()),
    }
}

/// What is said of `-m` with two sizes where one has no meaning.
const NONE_IS_TRACE: &str =
    "a second size of -m is for hardware traces, and none of the events is one";

/// How the trace among `events` is kept; `None` where there is none, and options that are for traces alone are refused.
pub(super) fn traces(
    matches: &ArgMatches,
    context: &Context,
    events: &[EventSpec],
) -> Result<Option<Traces>, CliError> {
    let pages = ring_size::area_pages(matches, context)?;
    let snapshots = snapshots(matches)?;
    let Some(event) = events.iter().find(|event| event.tracer().is_some()) else {
        let given = [
            (snapshots.is_some(), "--snapshot"),
            (pages.is_some(), "a second size of -m"),
        ];
        return match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(CliError::usage(format!(
                "{option} is for hardware traces, and none of the events is one"
            ))),
            None => Ok(None),
        };
    };
    let refused = |why: &str| CliError::usage(format!("event {}: {why}", event.name));
    if flag(matches, "per-thread") != Some(true) {
        let why = "the trace follows threads, not CPUs";
        return Err(refused(why).hint("add --per-thread"));
    }
    if let Some((option, why)) = NOT_WITH
        .into_iter()
        .find(|(option, _)| is_given(matches, option))
    {
        return Err(refused(&format!(
            "--{option} does not go with a trace: {why}"
        )));
    }
    let turns = ["switch-output", "switch-output-event"];
    if snapshots.is_some() && turns.iter().any(|option| is_given(matches, option)) {
        return Err(CliError::usage(
            "--snapshot and --switch-output exclude each other: SIGUSR2 asks for one of them",
        ));
    }
    let paranoid = Sysctl::new(PROC).perf_event_paranoid();
    Ok(Some(Traces {
        pages,
        privileged: effective_user() == 0 || paranoid.is_some_and(|level| level < 0),
        snapshots,
    }))
}

/// Of `--snapshot`: an `e` for one at the end, and bytes.
fn snapshots(matches: &ArgMatches) -> Result<Option<Snapshots>, CliError> {
    let word = matches.get_one::<String>("snapshot");
    let parsed = word.map(|word| {
        parse(word).ok_or_else(|| {
            CliError::usage(format!("--snapshot: '{word}' is no size")).hint(
                "give bytes (65536, 64K, 1M), 'e' before them for one at the end too, or nothing",
            )
        })
    });
    parsed.transpose()
}

fn parse(word: &str) -> Option<Snapshots> {
    let rest = word.strip_prefix('e');
    let size = rest.unwrap_or(word);
    let size = match size {
        "" => None,
        size => Some(
            usize::try_from(bytes(size)?)
                .ok()
                .filter(|size| *size > 0)?,
        ),
    };
    Some(Snapshots {
        size,
        at_end: rest.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_have_a_size_and_may_be_taken_at_the_end() {
        for (word, size, at_end) in [
            ("", None, false),
            ("e", None, true),
            ("4096", Some(4096), false),
            ("e64K", Some(64 << 10), true),
        ] {
            assert_eq!(parse(word), Some(Snapshots { size, at_end }), "{word}");
        }
        for bad in ["x", "0", "e0", "4096e", "-1", "1X"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
