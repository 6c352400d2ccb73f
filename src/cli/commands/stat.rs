//! `rperf stat`: counts events of a program or the system.

mod args;
mod events;
mod field_ranges;
mod grouping;
mod hints;
mod in_kernel;
mod metrics;
mod option_conflicts;
mod output;
mod plan;
mod report;
mod runs;
mod stat_record;
mod tables;
mod timing;

use clap::ArgMatches;

use self::output::StatOutput;
use self::plan::StatPlan;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

pub(super) use self::args::command;
pub(super) use self::report::{command as report_command, run as report};
pub(super) use self::stat_record::command as record_command;

/// Counts events and prints the counts.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    option_conflicts::check(matches)?;
    let plan = StatPlan::new(matches, context)?;
    let path = matches.get_one::<String>("output");
    count(
        &plan,
        StatOutput::open(path, matches, context)?,
        matches,
        context,
    )
}

/// Counts events, prints the counts, and stores all readings of the counters in a file.
pub(super) fn record(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    option_conflicts::check(matches)?;
    stat_record::check(matches, context)?;
    // No path is passed to `StatOutput`: `-o` names the recording, which is part of the plan.
    let plan = stat_record::with_output(StatPlan::new(matches, context)?, matches, context)?;
    count(
        &plan,
        StatOutput::open(None, matches, context)?,
        matches,
        context,
    )
}

fn count(
    plan: &StatPlan,
    mut sink: StatOutput,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    runs::StatRuns::new(plan, context, matches, &mut sink)?.run()
}
