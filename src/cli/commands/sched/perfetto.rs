//! `sched perfetto`: the scheduler's events for Perfetto's viewer.

use std::path::Path;

use clap::{ArgMatches, Command};

use super::recording::{SchedRecording, conclude};
use super::without_dump;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::value;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::perfetto_trace::{TraceContent, write_trace};

const ABOUT: &str = "\
Writes the context switches and wakeups of a recording in Perfetto's format. Its viewer shows a track for each CPU with the tasks that run on \
it, and one for each thread with its states; arrows lead from a wakeup to the task that is woken.";

/// The default output file.
const DEFAULT_OUTPUT: &str = "sched.pftrace";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched perfetto")
        .long_about(ABOUT)
        .arg(
            value("output", "file")
                .short('o')
                .help("output file, - for the standard output (default: sched.pftrace)"),
        )
        // The common options; `-D` is refused, as in all subcommands of `sched` that Linux perf does not have.
        .args(without_dump())
        .arg(jobs::option())
}

/// Writes the file.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let output = matches.get_one::<String>("output");
    let output = output.map_or(DEFAULT_OUTPUT, String::as_str);
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let recording = SchedRecording::new(&analysis)?;
    let content = TraceContent {
        has_tasks: true,
        // No idle states and frequencies of CPUs: `timechart` writes those.
        has_power: false,
        // All times.
        range: (0, u64::MAX),
        // The file is written even if no event is found.
        may_be_empty: true,
    };
    let walk = write_trace(Path::new(output), &analysis, &recording.layouts, content)?;
    conclude(&analysis, walk.delivered, &walk.losses, matches)
}
