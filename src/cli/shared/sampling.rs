//! Options of commands that sample: events, rates, ring buffers, callchains.

mod call_graph;
mod rate;
pub(crate) mod ring_size;
pub(crate) mod size;
pub(crate) mod synthesis;
pub(crate) mod traces;

use std::path::Path;

use clap::ArgMatches;
use rperf_events::{EventSpec, default_event, on_each_core_pmu};
use rperf_session::{Target, may_profile_kernel};
use rperf_sys::{Sysctl, cpuid};

pub(crate) use self::call_graph::CallchainOptions;
pub(crate) use self::rate::sampling;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{PROC, events, explain};
use crate::cli::options::flag;
use crate::cli::pmus::{MachinePmus, SYSFS};
use crate::cli::tracefs::MachineTracepoints;

/// Returns the events to record: those given, or the default. Rejects events that only `stat` can count, and hardware traces that
/// cannot be recorded. With `--group`, the events are one group.
pub(crate) fn events_to_record(
    matches: &ArgMatches,
    context: &Context,
    target: &Target,
    pmus: &MachinePmus,
    tracepoints: &MachineTracepoints,
) -> Result<Vec<EventSpec>, CliError> {
    let events = match events::events(matches, context, pmus, tracepoints)? {
        Some(events) => events,
        None => on_each_core_pmu(
            default_event_of(context, target),
            &pmus.catalogue(tracepoints),
        ),
    };
    if let Some(tool) = events.iter().find(|event| event.tool.is_some()) {
        let message = format!("event {} can only be counted, by 'stat'", tool.name);
        return Err(CliError::usage(message));
    }
    if let Some(per_core) = events.iter().find(|event| event.settings.per_core) {
        let message = format!(
            "event {}: `percore' is supported by 'stat' only",
            per_core.name
        );
        return Err(CliError::usage(message));
    }
    events::refuse_bpf_counters(&events)?;
    traces::check(&events)?;
    Ok(match flag(matches, "group") {
        Some(true) => events::grouped(events),
        _ => events,
    })
}

/// Parses `-r`.
pub(crate) fn real_time(matches: &ArgMatches) -> Result<Option<i32>, CliError> {
    let Some(priority) = matches.get_one::<u64>("realtime") else {
        return Ok(None);
    };
    let valid = i32::try_from(*priority)
        .ok()
        .filter(|priority| (1..=99).contains(priority));
    let invalid = || {
        CliError::usage(format!(
            "-r: {priority} is not a real-time priority: 1 to 99"
        ))
    };
    valid.map(Some).ok_or_else(invalid)
}

/// Returns the command line, with the program's path.
pub(crate) fn command_line(context: &Context) -> Vec<String> {
    let program = std::env::current_exe()
        .ok()
        .map(std::path::PathBuf::into_os_string);
    let words = program
        .into_iter()
        .chain(context.argv.iter().skip(1).cloned());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Returns the default event, which depends on the processor: on AMD, it does not exclude guests. Prints a note if it excludes
/// the kernel because the user may not profile it.
fn default_event_of(context: &Context, target: &Target) -> EventSpec {
    // Excluding the kernel from CPU-wide events would not help: an unprivileged user may not open them in either case. No note is
    // needed for them, as the error from opening them gives the reason.
    let with_kernel = matches!(target, Target::Cpus(_)) || may_profile_kernel();
    if !with_kernel {
        let paranoid = Sysctl::new(PROC).perf_event_paranoid();
        context.note(explain::user_only_note(paranoid, "recording"));
    }
    default_event(with_kernel, &cpuid(Path::new(SYSFS)).unwrap_or_default())
}
