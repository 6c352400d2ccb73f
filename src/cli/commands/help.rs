//! `rperf help [COMMAND | examples]`, `rperf help --man DIR`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::value;
use crate::cli::{examples, help, man};

const ABOUT: &str = "\
Prints the list of commands, the manual of one command, or example command lines.

--man writes manual pages for man(1): one for the program, one for each command and subcommand.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("help")
        .long_about(ABOUT)
        .arg(
            value("man", "directory")
                .value_parser(clap::value_parser!(PathBuf))
                .help("write manual pages into this directory (created if missing)"),
        )
        .arg(Arg::new("topic").num_args(0..=1))
}

/// Prints the manual of the command that the topic names, the examples, or without a topic the list of commands; with `--man`,
/// writes manual pages.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let topic = matches.get_one::<String>("topic");
    if let Some(folder) = matches.get_one::<PathBuf>("man") {
        if topic.is_some() {
            return Err(CliError::usage(
                "help --man writes all pages and takes no topic",
            ));
        }
        man::write_pages(folder, context)?;
        return Ok(ExitStatus::Ok);
    }
    let Some(topic) = topic else {
        help::overview(context)?;
        return Ok(ExitStatus::Ok);
    };
    if topic == "examples" {
        // "help" is the command whose pager setting applies.
        help::print_paged(context, "help", &examples::page(context.program))?;
        return Ok(ExitStatus::Ok);
    }
    let entry = super::find(context, topic)?;
    help::manual(context, entry.title(), &(entry.build)())?;
    Ok(ExitStatus::Ok)
}
