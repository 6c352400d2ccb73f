//! `kwork report`: how long each interrupt, softirq and work item ran.

use clap::{ArgMatches, Command};
use rperf_analysis::kwork::KworkSortKey;
use rperf_view::kwork::table::KworkColumns;

use super::sort_keys;
use super::table::TableCommand;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::switch;

const REPORT: TableCommand = TableCommand {
    name: "kwork report",
    about: "\
Shows for each interrupt handler, softirq (s) and work item (w) on each CPU its total run time, the number of runs, and when the longest run began \
and ended.",
    sort_help: "sort keys, highest first: runtime, max, count (default: runtime,max,count)",
    columns: KworkColumns::Runtime,
};

const DEFAULT_KEYS: [KworkSortKey; 3] = [
    KworkSortKey::Total,
    KworkSortKey::Maximum,
    KworkSortKey::Count,
];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    REPORT.command_with([switch("with-summary")
        .short('S')
        .help("also show the sums of all rows, and their share of one CPU")])
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let keys = sort_keys(matches, &DEFAULT_KEYS, "runtime, max and count", |name| {
        Some(match name {
            "runtime" => KworkSortKey::Total,
            "max" => KworkSortKey::Maximum,
            "count" => KworkSortKey::Count,
            _ => return None,
        })
    })?;
    REPORT.run(&keys, matches, context)
}
