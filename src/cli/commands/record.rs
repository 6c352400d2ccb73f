//! `rperf record`: samples into a perf.data file.

mod args;

use clap::ArgMatches;

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};

pub(super) use self::args::command;

/// Records until the workload ends or the user stops it.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    args::check_old_spelling(matches, context)?;
    Err(CliError::message(255, "record is being built"))
}
