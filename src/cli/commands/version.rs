//! `rperf version [--build-options]`, which also runs for `rperf --version` and `rperf -v`, and for `rperf -vv` with the build
//! options.

use std::io::Write as _;

use clap::{ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{count, counter, flag, switch};
use crate::cli::shared::features::FEATURES;

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("version")
        .long_about("Prints the version; with --build-options also the features of perf, and whether each is built in.")
        .arg(switch("build-options").help("show the build options"))
        .arg(
            counter("verbose")
                .short('v')
                .help("the same as --build-options"),
        )
}

/// Prints the version.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let mut out = context.stdout();
    writeln!(
        out,
        "{} version {}",
        context.program,
        env!("CARGO_PKG_VERSION")
    )?;
    if flag(matches, "build-options") == Some(true) || count(matches, "verbose") > 0 {
        for feature in FEATURES {
            writeln!(out, "{feature}")?;
        }
    }
    Ok(ExitStatus::Ok)
}
