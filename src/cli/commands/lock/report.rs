//! `lock report`: a row per lock.

use clap::{ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{write_debug, write_json, write_report};

use super::analysis::{LockQuery, read};
use super::{columns, table_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::{flag, unsupported};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::{conclude, losses};
use crate::cli::symbol_options::SymbolSources;

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

/// The options.
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
        entries: super::contention::entries(matches),
        stack_skip: super::contention::STACK_SKIP,
        max_stack: 0,
        callstack: None,
    };
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let found = read(&analysis, &symbols, &query, matches)?;
    context.paginate("lock")?;
    let out = &mut context.stdout();
    if flag(matches, "json") == Some(true) {
        write_json(out, &found.rows, losses(&analysis).lost)?;
    } else {
        write_report(out, &shown, &found.rows)?;
        if context.verbosity(matches) > 0 {
            write_debug(out, found.rows.len())?;
        }
    }
    let losses = &found.contention.losses;
    conclude(&analysis, found.delivered, losses, "waits", matches)
}
