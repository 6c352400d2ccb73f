//! Hardware traces: how they are recorded, `--snapshot`, and unsupported combinations.

use clap::ArgMatches;
use rperf_events::{EventSpec, TracePmu};
use rperf_session::{SnapshotOptions, TraceOptions};
use rperf_sys::{Sysctl, effective_user};

use super::ring_size;
use super::size::bytes;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::PROC;
use crate::cli::options::{flag, is_given};

/// Options that conflict with a trace, and why.
const NOT_WITH: [(&str, &str); 5] = [
    (
        "overwrite",
        "the records of the ring locate the trace; use --snapshot to keep the end of the trace",
    ),
    ("unwind", "AUX areas cannot be rewritten"),
    ("off-cpu", "AUX areas cannot be rewritten"),
    (
        "tail-synthesize",
        "the description of the trace must precede it",
    ),
    (
        "threads",
        "the trace uses ring buffers of threads, which belong to no CPU",
    ),
];

/// Rejects any trace other than `intel_bts`, and more than one trace among `events`.
pub(crate) fn check(events: &[EventSpec]) -> Result<(), CliError> {
    let mut traces = events
        .iter()
        .filter_map(|event| Some((event, event.trace_pmu()?)));
    if let Some((trace, _)) = traces.clone().find(|(_, pmu)| *pmu == TracePmu::Other) {
        let message = format!(
            "event {} is not supported: intel_bts is the only hardware trace that can be recorded",
            trace.name
        );
        return Err(CliError::usage(message).hint("use -b to sample branch stacks"));
    }
    match (traces.next(), traces.next()) {
        (Some(_), Some((second, _))) => Err(CliError::usage(format!(
            "event {}: only one hardware trace can be recorded at a time",
            second.name
        ))),
        _ => Ok(()),
    }
}

/// Rejects traces, and AUX area sizes, for commands that do not record.
pub(crate) fn refuse(
    matches: &ArgMatches,
    context: &Context,
    events: &[EventSpec],
) -> Result<(), CliError> {
    if let Some(trace) = events.iter().find(|event| event.trace_pmu().is_some()) {
        let message = format!(
            "event {} is a hardware trace without samples: use 'record'",
            trace.name
        );
        return Err(CliError::usage(message));
    }
    match ring_size::area_pages(matches, context)? {
        Some(_) => Err(CliError::usage(NO_TRACE_FOR_SIZE)),
        None => Ok(()),
    }
}

/// The error for `-m` with two sizes and no trace.
const NO_TRACE_FOR_SIZE: &str = "the second size of -m needs a hardware trace among the events";

/// Returns how the trace among `events` is recorded. Without a trace, returns `None`, or an error if options of traces are given.
pub(crate) fn traces(
    matches: &ArgMatches,
    context: &Context,
    events: &[EventSpec],
) -> Result<Option<TraceOptions>, CliError> {
    let pages = ring_size::area_pages(matches, context)?;
    let snapshots = snapshots(matches)?;
    let Some(event) = events.iter().find(|event| event.trace_pmu().is_some()) else {
        let trace_only_options = [
            (snapshots.is_some(), "--snapshot"),
            (pages.is_some(), "the second size of -m"),
        ];
        return match trace_only_options.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => Err(CliError::usage(format!(
                "{option} needs a hardware trace among the events"
            ))),
            None => Ok(None),
        };
    };
    let refused = |why: &str| CliError::usage(format!("event {}: {why}", event.name));
    if flag(matches, "per-thread") != Some(true) {
        let why = "the trace is recorded per thread, not per CPU";
        return Err(refused(why).hint("add --per-thread"));
    }
    if let Some((option, why)) = NOT_WITH
        .into_iter()
        .find(|(option, _)| is_given(matches, option))
    {
        return Err(refused(&format!(
            "--{option} cannot be combined with a trace: {why}"
        )));
    }
    let rotation = ["switch-output", "switch-output-event"];
    if snapshots.is_some() && rotation.iter().any(|option| is_given(matches, option)) {
        return Err(CliError::usage(
            "--snapshot and --switch-output exclude each other: both use SIGUSR2",
        ));
    }
    let paranoid = Sysctl::new(PROC).perf_event_paranoid();
    Ok(Some(TraceOptions {
        pages,
        // As in the kernel, whether the user may lock unlimited memory.
        privileged: effective_user() == 0 || paranoid.is_some_and(|level| level < 0),
        snapshots,
    }))
}

/// Parses `--snapshot=[e][SIZE]`: `e` takes another snapshot at the end of the recording, and `SIZE` is the maximum size in
/// bytes, by default that of the AUX area.
fn snapshots(matches: &ArgMatches) -> Result<Option<SnapshotOptions>, CliError> {
    let word = matches.get_one::<String>("snapshot");
    let parsed = word.map(|word| {
        parse(word).ok_or_else(|| {
            CliError::usage(format!("--snapshot: '{word}' is not a size")).hint(
                "give bytes (65536, 64K, 1M); a leading 'e' takes another snapshot at the end",
            )
        })
    });
    parsed.transpose()
}

/// Parses `[e][SIZE]`; `None` if the size is invalid or 0.
fn parse(word: &str) -> Option<SnapshotOptions> {
    let after_e = word.strip_prefix('e');
    let size_text = after_e.unwrap_or(word);
    let size = match size_text {
        "" => None,
        _ => Some(
            usize::try_from(bytes(size_text)?)
                .ok()
                .filter(|size| *size > 0)?,
        ),
    };
    Some(SnapshotOptions {
        size,
        at_end: after_e.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_may_have_a_size_and_be_taken_at_the_end() {
        for (word, size, at_end) in [
            ("", None, false),
            ("e", None, true),
            ("4096", Some(4096), false),
            ("e64K", Some(64 << 10), true),
        ] {
            assert_eq!(
                parse(word),
                Some(SnapshotOptions { size, at_end }),
                "{word}"
            );
        }
        for bad in ["x", "0", "e0", "4096e", "-1", "1X"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
