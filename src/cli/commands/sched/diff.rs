//! `sched diff`: the waits for a CPU in two recordings.

use std::path::PathBuf;

use clap::{ArgMatches, Command};
use rperf_analysis::sched::latency::{LatencyOptions, LatencySortKey, LatencyTable, SchedLatency};
use rperf_analysis::{AllSamples, ObserverPass};
use rperf_view::sched::comparison::{compare_delays, write_diff, write_diff_json};

use super::recording::{SchedRecording, conclude};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, OpenedInput};
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{counter, flag, switch};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::recording_pair;

// Why an interval needs two, eight or some 570 waits is explained where intervals are computed, in
// `rperf_view::sched::comparison`.
const ABOUT: &str = "\
Compares how long the tasks of two recordings waited for a CPU, by name: mean, median and 99th percentile of the waits, each with its 95% \
confidence interval. Differences of means are tested with Welch's t-test; percentiles differ if their intervals do not overlap. An interval \
needs two waits for the mean, eight for the median and some 570 for the 99th percentile. Waits are assumed to be independent of each other. \
Without files it compares perf.data.old with perf.data.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched diff")
        .long_about(ABOUT)
        .arg(input::force())
        .arg(switch("json").help("print the rows as JSON, in nanoseconds"))
        .arg(
            counter("verbose")
                .short('v')
                .help("list all stretches of time in which records were lost"),
        )
        .arg(jobs::option())
        .arg(recording_pair::operands())
}

/// Prints the comparison.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let [before, after] = recording_pair::earlier_and_later(matches, "sched diff")?;
    let before = delays(before, matches, context)?;
    let after = delays(after, matches, context)?;
    let rows = compare_delays(&before, &after);
    match flag(matches, "json") == Some(true) {
        true => write_diff_json(&mut context.stdout(), &rows)?,
        false => {
            context.paginate("sched")?;
            write_diff(&mut context.stdout(), &rows)?;
        }
    }
    Ok(ExitStatus::Ok)
}

/// Returns the waits of a recording, by name.
fn delays(
    path: PathBuf,
    matches: &ArgMatches,
    context: &Context,
) -> Result<LatencyTable, CliError> {
    let force = flag(matches, "force") == Some(true);
    let input = OpenedInput::named(Some(path), force, context)?.complete(context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = SchedRecording::new(&analysis)?;
    // The distributions are needed for the median and the 99th percentile.
    let options = LatencyOptions {
        with_distributions: true,
        ..LatencyOptions::default()
    };
    let mut latency = SchedLatency::new(&recording.layouts, options);
    // `AllSamples`: no filter. `with_tasks`: also the start, exit and renaming of tasks.
    let pass = ObserverPass::new(&recording.layouts, AllSamples).with_tasks();
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut latency)?;
    let merge_names = true;
    let table = latency.finish(merge_names, &LatencySortKey::DEFAULT);
    // Warns about skipped samples and lost records; fails if records could not be decoded, or reading stopped before the end.
    conclude(&analysis, delivered, &table.losses, matches)?;
    Ok(table)
}
