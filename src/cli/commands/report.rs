//! `rperf report`: where the samples of a recording fell.

mod args;

use clap::ArgMatches;

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::Input;

pub(super) use self::args::command;

/// Prints the report.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    if let Some(word) = matches.get_one::<String>("symbol-filter-word") {
        return Err(
            CliError::usage(format!("{} report: '{word}' is no option", context.program)).hint(
                format!(
                    "-i {word} reads a file of that name; filtering by symbol is not supported yet"
                ),
            ),
        );
    }
    let input = Input::open(matches, context)?;
    let _data = input.parse(context)?;
    Err(CliError::message(255, "report is being built"))
}
