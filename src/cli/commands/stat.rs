//! `rperf stat`: what a program or the system does, counted.

mod args;
mod course;
mod events;
mod grouping;
mod hints;
mod metrics;
mod output;
mod plan;
mod refused;
mod runs;
mod show;

use clap::ArgMatches;

use self::output::Sink;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};

pub(super) use self::args::command;

/// Counts until the workload ends or the user stops it, as often as is asked for.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    refused::check(matches)?;
    let plan = plan::Plan::new(matches, context)?;
    let mut sink = Sink::open(matches, context)?;
    let ended = runs::Runs::new(&plan, context, matches, &mut sink)?.run()?;
    Ok(ended.map_or(Exit::Ok, plan::exit))
}
