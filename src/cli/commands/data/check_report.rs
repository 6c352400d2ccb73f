//! `rperf data check`: checks a recording and prints the result.

use std::io::Write as _;
use std::path::PathBuf;

use clap::ArgMatches;

use super::{check, is_set};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::OpenedInput;

/// Checks the recording and prints the result. `files` are the arguments after `check`: more than one is an error.
pub(super) fn run(
    files: &[&str],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let file = file(files, matches, context)?;
    let opened = OpenedInput::named(file, is_set(matches, "force"), context)?;
    // A pipe is read to its end before the check.
    let input = opened.complete(context)?;
    // `parse` would also warn of the damage that the check reports.
    let data = input.parse_quietly(context)?;
    let checked = check::check(&data)?;
    if !is_set(matches, "quiet") {
        let out = &mut context.stdout();
        let path = input.path.display();
        for fault in &checked.faults {
            writeln!(out, "{path}: {fault}")?;
        }
        for note in &checked.notes {
            writeln!(out, "{path}: note: {note}")?;
        }
        writeln!(out, "{path}: {}", checked.summary())?;
        out.flush()?;
    }
    Ok(match checked.faults.is_empty() {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}

/// The file, given as argument or with `-i`; `None` if neither is given.
fn file(
    files: &[&str],
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<PathBuf>, CliError> {
    let named = matches.get_one::<String>("input").map(PathBuf::from);
    match (files, named) {
        ([], named) => Ok(named),
        ([file], None) => Ok(Some(file.into())),
        ([_, more, ..], _) | ([more], Some(_)) => Err(CliError::usage(format!(
            "{} data check: unexpected word '{more}': one file can be checked at a time",
            context.program
        ))),
    }
}
