//! `rperf script`: every sample of a recording as text.

mod args;

use clap::ArgMatches;

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::Input;

pub(super) use self::args::command;

/// Prints the samples.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    args::refuse_script(matches, context)?;
    let input = Input::open(matches, context)?;
    let _data = input.parse(context)?;
    Err(CliError::message(255, "script is being built"))
}
