//! Notes printed with the table.

use rperf_count::{CountRow, CountState, CountTable};
use rperf_names::first_names;
use rperf_session::{EventReadings, Target};

use super::plan::StatPlan;
use crate::cli::context::Context;

/// Maximum number of names in a note.
const MAX_NAMES: usize = 4;

/// The program that is only used as a timer.
const TIMER: &str = "sleep";

/// Prints hints on the meaning of the counts:
/// - If all tasks of CPUs were counted: that the workload only set the duration. Not for `sleep`, which has no other purpose,
///   and not with `--bpf-prog`, which counts only while the given BPF programs run.
/// - With `-v`, after a single run in which only the workload was counted: that `-r` repeats it.
pub(super) fn explain_scope(context: &Context, plan: &StatPlan, verbose: bool) {
    let request = &plan.request;
    let name = request.workload.as_ref().map(|program| program.path());
    let name = name.and_then(|path| path.file_name());
    if let (Target::Cpus(cpus), Some(name)) = (&request.target, name)
        && name != TIMER
        && request.bpf.programs.is_empty()
    {
        let name = name.to_string_lossy();
        let counted = match cpus {
            None => "the whole system was",
            Some(_) => "all tasks on these CPUs were",
        };
        context.note(format_args!("hint: {counted} counted while '{name}' ran"));
    }
    if verbose && request.target == Target::Workload && plan.runs == Some(1) {
        context.note("hint: -r 5 repeats the command and shows means with standard errors");
    }
}

/// Prints a line below the table that explains rows without a number.
pub(super) fn explain_missing_counts(context: &Context, plan: &StatPlan, table: &CountTable) {
    let names_in = |is_wanted: fn(&CountState) -> bool| {
        let rows = table
            .rows
            .iter()
            .filter(|row: &&CountRow| is_wanted(&row.state));
        let mut names: Vec<&str> = Vec::new();
        for row in rows {
            let name = table
                .events
                .get(row.event)
                .map_or("", |event| event.name.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    };
    let unsupported = names_in(|state| matches!(state, CountState::NotSupported));
    let uncounted = names_in(|state| matches!(state, CountState::NotCounted));
    let mut parts = Vec::new();
    if !unsupported.is_empty() {
        parts.push(format!(
            "<not supported>: this kernel or machine cannot count {}",
            first_names(&unsupported, MAX_NAMES)
        ));
    }
    if !uncounted.is_empty() {
        let why = match plan.request.target {
            Target::Workload => {
                "the command was too short, or the event was never scheduled on a counter"
            }
            _ => "the target did not run, or the event was never scheduled on a counter",
        };
        parts.push(format!(
            "<not counted>: {} never ran ({why})",
            first_names(&uncounted, MAX_NAMES)
        ));
    }
    if !parts.is_empty() {
        context.note(format_args!("hint: {}", parts.join("; ")));
    }
}

/// Prints each event's value, time enabled and time running in nanoseconds, each summed over the event's counters; for an event
/// that is not supported, that it was not read.
pub(super) fn print_readings(context: &Context, readings: &EventReadings) {
    let events = readings.events.iter().zip(&readings.supported);
    for ((event, supported), cells) in events.zip(&readings.cells) {
        if !supported {
            context.note(format_args!("failed to read counter {}", event.name));
            continue;
        }
        let sum = |of: fn(&rperf_count::CounterCounts) -> u64| -> u64 {
            cells.iter().map(|cell| of(&cell.counts)).sum()
        };
        context.note(format_args!(
            "{}: {} {} {}",
            event.name,
            sum(|counts| counts.value),
            sum(|counts| counts.enabled),
            sum(|counts| counts.running)
        ));
    }
}
