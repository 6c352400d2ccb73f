//! `rperf check feature NAME[,NAME]...`: whether features are built in, as text and as an exit status.

use std::io::Write as _;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, switch};
use crate::cli::shared::features::Feature;

const ABOUT: &str = "\
Prints whether features are built in. The exit status is 0 if all of them are, and 1 if one is not or is unknown. \
'version --build-options' lists all features.";

/// The only subcommand.
const SUBCOMMAND: &str = "feature";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("check")
        .long_about(ABOUT)
        .arg(
            switch("quiet")
                .short('q')
                .help("print nothing, only set the exit status"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("words"))
}

/// Prints the features and returns the status.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let program = context.program;
    let list = match words.as_slice() {
        [SUBCOMMAND, list] => list,
        [SUBCOMMAND] => {
            return Err(CliError::usage(format!(
                "{program} check feature: name the features, separated by commas"
            )));
        }
        [SUBCOMMAND, ..] => {
            let message = "Too many arguments passed to 'check feature'";
            return Err(CliError::usage(message).hint("separate features by commas without spaces"));
        }
        [] => {
            return Err(CliError::usage(format!(
                "{program} check: expected 'feature <name>[,<name>]...'"
            )));
        }
        [other, ..] => {
            let error = CliError::usage(format!("Unknown subcommand: {other}"));
            return Err(error.hint(format!(
                "'{program} check feature {other}' checks a feature"
            )));
        }
    };
    let is_quiet = flag(matches, "quiet") == Some(true);
    let mut out = context.stdout();
    let mut are_all_built_in = true;
    for name in list.split(',').filter(|name| !name.is_empty()) {
        let found = Feature::find(name);
        are_all_built_in &= found.is_some_and(|feature| feature.is_built_in);
        match found {
            Some(_) if is_quiet => {}
            Some(feature) => writeln!(out, "{feature}")?,
            None => context.note(format_args!(
                "Unknown feature '{name}', please use '{program} version --build-options' to see which ones are available."
            )),
        }
    }
    out.flush()?;
    Ok(match are_all_built_in {
        true => ExitStatus::Ok,
        false => ExitStatus::Failure(1),
    })
}
