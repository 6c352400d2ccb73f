//! `lock report`: a row per lock, thread or owner.

use clap::{ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{ContentionTable, write_checks, write_report, write_report_titles};

use super::analysis::{LockEvents, LockQuery, print};
use super::{columns, entries, refuse_columns_of_json, run_queue_use, table_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, switch};

const ABOUT: &str = "\
Shows a row for each lock that was waited for, named by its first caller, or for each thread (-t) or owner (-o). From a recording of \
lockdep's events, it shows all locks that were taken, named by their classes.";

/// The default columns.
const DEFAULT_COLUMNS: [LockColumn; 6] = [
    LockColumn::Acquired,
    LockColumn::Contended,
    LockColumn::Average,
    LockColumn::Total,
    LockColumn::Max,
    LockColumn::Min,
];

/// The names of the columns in `-k` and `-F`.
const COLUMN_NAMES: [&str; 7] = [
    "acquired",
    "contended",
    "avg_wait",
    "wait_total",
    "wait_max",
    "wait_min",
    "run_queue",
];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock report")
        .long_about(ABOUT)
        .arg(switch("combine-locks").short('c').help("show a row for all locks of one name"))
        .arg(
            switch("lock-owner")
                .short('o')
                .help("show a row per thread that had the lock (recordings: 'lock record --user' or --owners)"),
        )
        .args(table_options(
            "column to sort by: acquired, contended, avg_wait, wait_total, wait_max, wait_min, run_queue (default: acquired)",
            "count events in an impossible order, and list all stretches of time in which records were lost",
        ))
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_columns_of_json(matches)?;
    let (key, shown_columns) = columns(
        matches,
        LockColumn::Acquired,
        &DEFAULT_COLUMNS,
        &COLUMN_NAMES,
    )?;
    let [threads, owners] = ["threads", "lock-owner"].map(|id| flag(matches, id) == Some(true));
    let aggregation = match (threads, owners) {
        (true, true) => return Err(CliError::usage("-t and -o exclude each other")),
        (true, false) => LockAggregation::Thread,
        (false, true) => LockAggregation::Owner,
        (false, false) => LockAggregation::Address,
    };
    let query = LockQuery {
        events: LockEvents::All,
        combines_locks: flag(matches, "combine-locks") == Some(true),
        shows_unended_waits: false,
        aggregation,
        // Has no effect here: only `lock contention` uses it.
        table: ContentionTable::Addresses,
        selection: LockSelection::default(),
        run_queue: run_queue_use(matches, &shown_columns),
        lock_names: Vec::new(),
        cgroups: None,
        key,
        entries: entries(matches),
        stack_skip: super::contention::STACK_SKIP,
        user_stack_skip: 0,
        max_stack: super::contention::MAX_STACK,
        callstack_filter: None,
    };
    print(matches, context, &query, |out, table| {
        if !context.output.is_quiet() {
            write_report_titles(out, &shown_columns)?;
        }
        write_report(out, &shown_columns, &table.rows)?;
        match table.shows_checks(matches, context) {
            true => write_checks(out, &table.checks),
            false => Ok(()),
        }
    })
}
