//! `lock info`: the threads and the locks of a recording.

use std::io::{self, Write};

use clap::{ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{ContentionTable, json, write_instances, write_threads};

use super::analysis::{LockEvents, LockQuery, RowNames, RunQueueUse, read};
use super::output::{print_json, print_text, refuse_dump_with_json};
use super::reading_options;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{flag, switch};
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude;
use crate::cli::symbol_options::SymbolSources;

const ABOUT: &str = "\
Lists the threads that waited for locks (-t), and the addresses and names of the locks (-m); both if neither is given. From a recording of \
lockdep's events, it lists all threads that took locks and all locks taken, named by their classes; otherwise a lock is named by its first caller.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock info")
        .long_about(ABOUT)
        .args([
            switch("threads").short('t').help("list threads"),
            switch("map")
                .short('m')
                .help("list addresses and names of locks"),
            switch("json").help("print the lists as JSON"),
            jobs::option(),
        ])
        .args(reading_options(
            "list all stretches of time in which records were lost",
        ))
}

/// Prints the lists as text or as JSON.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut lists = ["threads", "map"].map(|id| flag(matches, id) == Some(true));
    if lists == [false, false] {
        lists = [true, true];
    }
    let [lists_threads, lists_locks] = lists;
    refuse_dump_with_json(matches)?;
    let query = query();
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    record_dump::print(&analysis, matches, "lock")?;
    let resolver = analysis.resolver(&symbols);
    let (contention, delivered) = read(&analysis, &resolver, &query)?;
    let names = RowNames {
        resolver: &resolver,
        world: analysis.replay.world(),
        // The lists have neither stacks nor wakers.
        max_stack: 0,
        with_wakers: false,
        // As in perf, locks are named by callers.
        variables: None,
    };
    let tids = contention.threads().into_iter();
    let threads: Vec<(u32, String)> = tids.map(|tid| (tid, names.thread(tid))).collect();
    // Sorted by address; the key orders only the locks of several processes at the same address.
    let mut rows = contention.rows(query.key);
    rows.sort_by_key(|row| row.address);
    let locks: Vec<_> = rows.into_iter().map(|row| names.named(row)).collect();
    let threads = lists_threads.then_some(&*threads);
    let locks = lists_locks.then_some(&*locks);
    let write = |out: &mut dyn Write| -> io::Result<()> {
        if let Some(threads) = threads {
            write_threads(out, threads)?;
        }
        if threads.is_some() && locks.is_some() {
            writeln!(out)?;
        }
        // perf calls a lock an instance of its class.
        locks.map_or(Ok(()), |locks| write_instances(out, locks))
    };
    match flag(matches, "json") == Some(true) {
        true => print_json(matches, context, |out| {
            json::write_info(out, threads, locks)
        })?,
        false => print_text(matches, context, write)?,
    }
    conclude(&analysis, delivered, &contention.losses, "waits", matches)
}

/// Returns how waits are read: all of them, by the address of the lock, and lockdep's events if recorded.
fn query() -> LockQuery {
    LockQuery {
        events: LockEvents::All,
        combines_locks: false,
        shows_unended_waits: true,
        aggregation: LockAggregation::Address,
        table: ContentionTable::Addresses,
        selection: LockSelection::default(),
        run_queue: RunQueueUse::Ignored,
        lock_names: Vec::new(),
        cgroups: None,
        key: LockColumn::Acquired,
        entries: usize::MAX,
        // Stacks are read only for the callers by which locks are named.
        stack_skip: super::contention::STACK_SKIP,
        user_stack_skip: 0,
        max_stack: super::contention::MAX_STACK,
        callstack_filter: None,
    }
}
