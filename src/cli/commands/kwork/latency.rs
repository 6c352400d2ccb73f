//! `kwork latency`: how long softirqs and work items were pending.

use clap::{ArgMatches, Command};
use rperf_analysis::kwork::KworkSortKey;
use rperf_view::kwork::table::KworkColumns;

use super::sort_keys;
use super::table::TableCommand;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

const LATENCY: TableCommand = TableCommand {
    name: "kwork latency",
    about: "\
Shows for each softirq (s) and work item (w) on each CPU how long it was pending before it ran: the average, the number of delays, and when the \
longest delay began and ended. Interrupts are not listed, since no event shows when they become pending.",
    sort_help: "sort keys, highest first: avg, max, count (default: avg,max,count)",
    columns: KworkColumns::Delay,
};

const DEFAULT_KEYS: [KworkSortKey; 3] = [
    KworkSortKey::Average,
    KworkSortKey::Maximum,
    KworkSortKey::Count,
];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    let more_options = [];
    LATENCY.command_with(more_options)
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let keys = sort_keys(matches, &DEFAULT_KEYS, "avg, max and count", |name| {
        Some(match name {
            "avg" => KworkSortKey::Average,
            "max" => KworkSortKey::Maximum,
            "count" => KworkSortKey::Count,
            _ => return None,
        })
    })?;
    LATENCY.run(&keys, matches, context)
}
