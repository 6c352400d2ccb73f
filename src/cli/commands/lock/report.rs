//! `lock report`: a row per lock.

use clap::{ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{write_debug, write_report, write_report_titles};

use super::analysis::{LockQuery, print};
use super::{columns, entries, table_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, unsupported};

const ABOUT: &str = "\
Shows a row for each lock that was waited for, named by its first caller, or for each thread (-t).";

/// The columns in order.
const SHOWN: [LockColumn; 6] = [
    LockColumn::Acquired,
    LockColumn::Contended,
    LockColumn::Average,
    LockColumn::Total,
    LockColumn::Max,
    LockColumn::Min,
];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock report")
        .long_about(ABOUT)
        .arg(unsupported("combine-locks", "'lock contention' adds up callers").short('c'))
        .args(table_options(
            "column to sort by: acquired, contended, avg_wait, wait_total, wait_max, wait_min (default: acquired)",
        ))
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let known = "acquired, contended, avg_wait, wait_total, wait_max and wait_min";
    let (key, shown) = columns(matches, LockColumn::Acquired, &SHOWN, known)?;
    let query = LockQuery {
        aggregation: match flag(matches, "threads") == Some(true) {
            true => LockAggregation::Thread,
            false => LockAggregation::Address,
        },
        selection: LockSelection::default(),
        key,
        entries: entries(matches),
        stack_skip: super::contention::STACK_SKIP,
        max_stack: 0,
        callstack: None,
    };
    print(matches, context, &query, |out, rows| {
        if context.output.is_quiet() {
            return write_report(out, &shown, rows);
        }
        write_report_titles(out, &shown)?;
        write_report(out, &shown, rows)?;
        match context.verbosity(matches) > 0 {
            true => write_debug(out, rows.len()),
            false => Ok(()),
        }
    })
}
