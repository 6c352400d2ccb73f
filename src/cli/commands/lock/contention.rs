//! `lock contention`: how long callers, threads or locks waited.

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{
    ContentionTable, kind_flags, write_checks, write_contention, write_contention_titles,
};

use super::analysis::{LockEvents, LockQuery, print};
use super::{columns, entries, table_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::words;
use crate::cli::options::{flag, number, switch, unsupported, value};

const ABOUT: &str = "\
Shows how long callers, threads (-t) or locks (-l) waited for locks of the kernel, recorded with 'lock record'.";

/// The default number of innermost frames that are skipped when the caller is determined, and of frames of a stack, as in perf.
pub(super) const STACK_SKIP: usize = 3;
pub(super) const MAX_STACK: usize = 8;

/// The columns in order.
const SHOWN: [LockColumn; 4] = [
    LockColumn::Contended,
    LockColumn::Total,
    LockColumn::Max,
    LockColumn::Average,
];

/// Options that need a BPF program.
fn bpf_options() -> Vec<Arg> {
    let needs = "it needs a BPF program in the kernel";
    vec![
        unsupported("use-bpf", "record with 'lock record'").short('b'),
        unsupported("map-nr-entries", needs),
        unsupported("lock-owner", needs).short('o'),
        unsupported("cgroup-filter", needs).short('G'),
        unsupported("lock-cgroup", needs),
        unsupported("inject-delay", needs).short('J'),
        unsupported("all-cpus", "record with 'lock record -a'").short('a'),
        unsupported("cpu", "record with 'lock record -C'").short('C'),
        unsupported("pid", "record with 'lock record -p'").short('p'),
        unsupported("tid", "record with 'lock record -t'"),
    ]
}

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock contention")
        .long_about(ABOUT)
        .args(bpf_options())
        .args([
            switch("lock-addr").short('l').help("show a row per lock, by address"),
            value("max-stack", "n").value_parser(number).help("number of innermost frames to read (default: 8): waits with equal frames share a row, -v shows them"),
            value("stack-skip", "n")
                .value_parser(number)
                .help("number of innermost frames to skip when determining the caller (default: 3)"),
            value("type-filter", "type[,type...]")
                .short('Y')
                .help("only these types: spinlock, mutex, rwlock, rwsem:R, semaphore, rt-mutex, ..."),
            value("lock-filter", "address[,address...]")
                .short('L')
                .help("only locks at these addresses, in hexadecimal"),
            value("callstack-filter", "name[,name...]")
                .short('S')
                .help("only waits whose stack has a function with one of these words in its name"),
            value("field-separator", "text")
                .short('x')
                .help("print separated values, times in nanoseconds"),
        ])
        .args(table_options(
            "column to sort by: contended, wait_total, wait_max, wait_min, avg_wait (default: wait_total)",
        ))
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let known = "contended, wait_total, wait_max, wait_min and avg_wait";
    let (key, shown) = columns(matches, LockColumn::Total, &SHOWN, known)?;
    let is_on = |id| flag(matches, id) == Some(true);
    let (aggregation, table) = match (is_on("threads"), is_on("lock-addr")) {
        (true, true) => return Err(CliError::usage("-t and -l exclude each other")),
        (true, false) => (LockAggregation::Thread, ContentionTable::Threads),
        (false, true) => (LockAggregation::Address, ContentionTable::Addresses),
        (false, false) => (LockAggregation::Caller, ContentionTable::Callers),
    };
    let frames = |id: &str, default| match matches.get_one::<u64>(id) {
        Some(frames) => usize::try_from(*frames).unwrap_or(usize::MAX),
        None => default,
    };
    let query = LockQuery {
        events: LockEvents::Contention,
        combines: false,
        shows_waiting: true,
        aggregation,
        selection: selection(matches)?,
        key,
        entries: entries(matches),
        stack_skip: frames("stack-skip", STACK_SKIP),
        max_stack: frames("max-stack", MAX_STACK),
        callstack: words(matches, "callstack-filter"),
    };
    let separator = matches.get_one::<String>("field-separator");
    let separator = separator.map(String::as_str);
    print(matches, context, &query, |out, found| {
        if !context.output.is_quiet() {
            write_contention_titles(out, table, &shown, separator)?;
        }
        write_contention(out, table, &shown, &found.rows, separator)?;
        match separator.is_none() && found.shows_checks(matches, context) {
            true => write_checks(out, &found.checks),
            false => Ok(()),
        }
    })
}

/// Parses `--type-filter` and `--lock-filter`.
fn selection(matches: &ArgMatches) -> Result<LockSelection, CliError> {
    let mut selection = LockSelection::default();
    for word in words(matches, "type-filter").unwrap_or_default() {
        let flags = kind_flags(&word);
        if flags.is_empty() {
            return Err(CliError::usage(format!("Unknown lock flags: {word}"))
                .hint("the types are spinlock, mutex, rwlock, rwsem, semaphore, rt-mutex, rwlock-rt and pcpu-sem, :R or :W may follow"));
        }
        selection.flags.get_or_insert_default().extend(flags);
    }
    for word in words(matches, "lock-filter").unwrap_or_default() {
        let digits = word.strip_prefix("0x").unwrap_or(&word);
        let address = u64::from_str_radix(digits, 16).map_err(|_| {
            CliError::usage(format!("--lock-filter: '{word}' is not an address"))
                .hint("'lock contention -l' shows the addresses of locks")
        })?;
        selection.addresses.get_or_insert_default().push(address);
    }
    Ok(selection)
}
