//! What is said beside the table.

use rperf_count::{Row, State, Table};
use rperf_session::{Readings, Target};

use super::plan::Plan;
use crate::cli::context::Context;

/// Names that a line lists.
const NAMED: usize = 4;

/// The program by which nothing but time is meant.
const TIMER: &str = "sleep";

/// What is easily taken for something else: whom the table is of, and with `-v` how much one run tells.
pub(super) fn meaning(context: &Context, plan: &Plan, verbose: bool) {
    let request = &plan.request;
    let name = request.workload.as_ref().map(|program| program.path());
    let name = name.and_then(|path| path.file_name());
    if let (Target::Cpus(_), Some(name)) = (&request.target, name)
        && name != TIMER
    {
        let name = name.to_string_lossy();
        context.note(format_args!(
            "hint: whole CPUs were counted; '{name}' only set how long"
        ));
    }
    if verbose && request.target == Target::Workload && plan.runs == Some(1) {
        context.note("hint: this was one run; -r 5 tells how far several are apart");
    }
}

/// One line below the table that tells what rows without a number mean.
pub(super) fn below(context: &Context, plan: &Plan, table: &Table) {
    let of = |state: fn(&State) -> bool| {
        let rows = table.rows.iter().filter(|row: &&Row| state(&row.state));
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
    let missing = of(|state| matches!(state, State::NotSupported));
    let idle = of(|state| matches!(state, State::NotCounted));
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!(
            "<not supported>: neither kernel nor machine can count {} here",
            listed(&missing)
        ));
    }
    if !idle.is_empty() {
        let why = match plan.request.target {
            Target::Workload => "the program, or its turn on a counter, was too short",
            _ => "nothing that is watched ran, or it got no turn on a counter",
        };
        parts.push(format!(
            "<not counted>: {} never ran ({why})",
            listed(&idle)
        ));
    }
    if !parts.is_empty() {
        context.note(format_args!("hint: {}", parts.join("; ")));
    }
}

fn listed(names: &[&str]) -> String {
    let named = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Each event's count as it was read: the value, nanoseconds enabled, nanoseconds on a counter.
pub(super) fn readings(context: &Context, readings: &Readings) {
    let events = readings.events.iter().zip(&readings.supported);
    for ((event, supported), cells) in events.zip(&readings.cells) {
        if !supported {
            context.note(format_args!("failed to read counter {}", event.name));
            continue;
        }
        let sum = |of: fn(&rperf_count::Counts) -> u64| -> u64 {
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
