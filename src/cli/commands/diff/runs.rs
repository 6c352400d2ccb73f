//! `--runs`: two groups of runs, whose differences are tested for significance.

use std::io::Write;

use rperf_hist::{ComparedRuns, RunComparison};
use rperf_view::diff::{RunsEvent, write_runs, write_runs_json};

use super::counting::SamplesFile;
use super::settings::{DiffSettings, RunOptions};
use super::{EventComparison, PERCENTAGE_POINTS, check_growth, label};
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Prints the comparison of the groups, and checks `--fail-above`.
pub(super) fn print(
    files: &[SamplesFile],
    compared: &[EventComparison],
    runs: &RunOptions,
    settings: &DiffSettings,
    context: &Context,
) -> Result<(), CliError> {
    let tested = compared.iter().filter_map(|event| {
        let is_complete = has_all_runs(event, files, context);
        // `None` if a group has fewer than two runs, which the option parser refuses.
        let run_comparison = RunComparison::new(&event.comparison, runs.baseline_files);
        Some((event, run_comparison.filter(|_| is_complete)?))
    });
    let tested: Vec<_> = tested.collect();
    if tested.is_empty() {
        return Err(CliError::message(
            255,
            "nothing to compare: no event has samples in all runs",
        ));
    }
    let events = tested.iter().map(|(event, run_comparison)| RunsEvent {
        name: &event.name,
        comparison: &event.comparison,
        runs: run_comparison,
        shows_all: runs.shows_all,
    });
    let events: Vec<RunsEvent<'_>> = events.collect();
    write(files, &events, runs, settings, context)?;
    let rows = tested
        .iter()
        .flat_map(|(_, run_comparison)| &run_comparison.rows);
    let rows = rows.filter(|row| row.is_significant());
    let changes = rows.map(|row: &ComparedRuns| (row.difference(), label(&row.row)));
    check_growth(changes, settings.fail_above, PERCENTAGE_POINTS)
}

/// Whether all runs have samples of an event. If only some have any, warns and names the runs without samples.
fn has_all_runs(event: &EventComparison, files: &[SamplesFile], context: &Context) -> bool {
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
    files: &[SamplesFile],
    events: &[RunsEvent<'_>],
    runs: &RunOptions,
    settings: &DiffSettings,
    context: &Context,
) -> Result<(), CliError> {
    if settings.json {
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let (baseline, other) = names.split_at(runs.baseline_files.min(names.len()));
        let out = &mut context.stdout();
        write_runs_json(out, [baseline, other], events)?;
        out.flush()?;
        return Ok(());
    }
    context.paginate("diff")?;
    let out = &mut context.stdout();
    for (number, event) in events.iter().enumerate() {
        let is_first = number == 0;
        write_runs(out, event, &settings.layout, is_first)?;
    }
    out.flush()?;
    Ok(())
}
