//! `rperf stat`: what a program or the system does, counted.

mod args;
mod course;
mod events;
mod grouping;
mod hints;
mod keeping;
mod metrics;
mod output;
mod plan;
mod refused;
mod report;
mod runs;
mod show;

use clap::ArgMatches;

use self::output::Sink;
use self::plan::Plan;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};

pub(super) use self::args::command;
pub(super) use self::keeping::command as record_command;
pub(super) use self::report::{command as report_command, run as report};

/// Counts until the workload ends or the user stops it, as often as is asked for.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    refused::check(matches)?;
    let plan = Plan::new(matches, context)?;
    let path = matches.get_one::<String>("output");
    count(&plan, Sink::open(path, matches, context)?, matches, context)
}

/// The same, kept in a file.
pub(super) fn record(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    refused::check(matches)?;
    keeping::check(matches, context)?;
    let plan = keeping::kept(Plan::new(matches, context)?, matches, context)?;
    count(&plan, Sink::open(None, matches, context)?, matches, context)
}

fn count(
    plan: &Plan,
    mut sink: Sink,
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let ended = runs::Runs::new(plan, context, matches, &mut sink)?.run()?;
    Ok(ended.map_or(Exit::Ok, plan::exit))
}
