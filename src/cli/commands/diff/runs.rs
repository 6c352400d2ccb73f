//! `--runs`: two groups of runs, whose differences are tested for significance.

use std::io::Write;

use rperf_hist::{ComparedRuns, RunComparison};
use rperf_view::diff::{RunsEvent, write_runs, write_runs_json};

use super::counting::CountedFile;
use super::settings::{DiffSettings, RunOptions};
use super::{EventComparison, PERCENTAGE_POINTS, growth, label};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Prints the comparison of the groups, and checks `--fail-above`.
pub(super) fn print(
    files: &[CountedFile],
    compared: &[EventComparison],
    runs: &RunOptions,
    settings: &DiffSettings,
    context: &Context,
) -> Result<(), CliError> {
    let groups = compared.iter().filter_map(|event| {
        let is_complete = has_all_runs(event, files, context);
        let groups = RunComparison::new(&event.comparison, runs.baseline);
        Some((event, groups.filter(|_| is_complete)?))
    });
    let groups: Vec<_> = groups.collect();
    if groups.is_empty() {
        return Err(CliError::message(
            255,
            "nothing to compare: no event has samples in all runs",
        ));
    }
    let events = groups.iter().map(|(event, groups)| RunsEvent {
        name: &event.name,
        comparison: &event.comparison,
        runs: groups,
        shows_all: runs.shows_all,
    });
    let events: Vec<RunsEvent<'_>> = events.collect();
    write(files, &events, runs, settings, context)?;
    let rows = groups.iter().flat_map(|(_, groups)| &groups.rows);
    let rows = rows.filter(|row| row.is_significant());
    let grown = rows.map(|row: &ComparedRuns| (row.difference(), label(&row.row)));
    growth(grown, settings.fail_above, PERCENTAGE_POINTS)
}

/// Whether all runs have samples of an event. If only some have, a warning names the others.
fn has_all_runs(event: &EventComparison, files: &[CountedFile], context: &Context) -> bool {
    let totals = &event.comparison.totals;
    if totals.iter().all(|total| *total == 0) {
        return false;
    }
    let empty = files.iter().zip(totals).filter(|(_, total)| **total == 0);
    let names: Vec<&str> = empty.map(|(file, _)| &*file.name).collect();
    if !names.is_empty() {
        context.warn(format_args!(
            "event '{}' is not compared: no samples in {}",
            event.name,
            names.join(", ")
        ));
    }
    names.is_empty()
}

fn write(
    files: &[CountedFile],
    events: &[RunsEvent<'_>],
    runs: &RunOptions,
    settings: &DiffSettings,
    context: &Context,
) -> Result<(), CliError> {
    if settings.json {
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let (baseline, other) = names.split_at(runs.baseline.min(names.len()));
        let out = &mut context.stdout();
        write_runs_json(out, [baseline, other], events)?;
        out.flush()?;
        return Ok(());
    }
    context.paginate("diff")?;
    let out = &mut context.stdout();
    for (number, event) in events.iter().enumerate() {
        write_runs(out, event, &settings.layout, number == 0)?;
    }
    out.flush()?;
    Ok(())
}
