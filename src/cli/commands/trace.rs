//! `rperf trace`: shows system calls and other events of programs, live or from a recording.

mod addresses;
mod args;
mod capture;
mod exec_tree;
mod kernel_summary;
mod kernel_types;
mod live;
mod output;
mod record;
mod replayed;
mod request;
mod selection;
mod stacks;

use clap::ArgMatches;

pub(super) use self::args::command;
use self::output::TracePrinter;
use self::request::TraceSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::workload;

/// Runs `trace record`, prints a recording, or traces a command, running tasks or the whole system.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let words = workload::workload_words(matches);
    if let Some((first, rest)) = words.split_first()
        && first == "record"
    {
        return record::run(rest, matches, context);
    }
    if matches.contains_id("input") {
        return replayed::run(matches, context);
    }
    live::run(matches, context)
}
