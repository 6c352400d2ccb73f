//! `rperf data check`: whether a recording is whole.

use std::io::Write as _;
use std::path::PathBuf;

use clap::ArgMatches;

use super::{check, is_set};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::input::Opened;

/// Checks the recording.
pub(super) fn run(
    words: &[&str],
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    let file = file(words, matches, context)?;
    let opened = Opened::named(file, is_set(matches, "force"), context)?;
    let input = opened.whole(context)?;
    let data = input.read(context)?;
    let checked = check::check(&data)?;
    if !is_set(matches, "quiet") {
        let out = &mut context.stdout();
        let shown = input.path.display();
        for fault in &checked.faults {
            writeln!(out, "{shown}: {fault}")?;
        }
        for note in &checked.notes {
            writeln!(out, "{shown}: note: {note}")?;
        }
        writeln!(out, "{shown}: {}", checked.summary())?;
        out.flush()?;
    }
    Ok(match checked.faults.is_empty() {
        true => Exit::Ok,
        false => Exit::Failure(1),
    })
}

/// The file that is named, in either way.
fn file(
    words: &[&str],
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<PathBuf>, CliError> {
    let named = matches.get_one::<String>("input").map(PathBuf::from);
    match (words, named) {
        ([], named) => Ok(named),
        ([file], None) => Ok(Some(file.into())),
        ([_, more, ..], _) | ([more], Some(_)) => Err(CliError::usage(format!(
            "{} data check: one file at a time; '{more}' is one too many",
            context.program
        ))),
    }
}
