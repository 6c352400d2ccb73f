//! `lock contention`: how long callers, threads or locks waited.

use std::io::{self, Write};

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{
    ContentionTable, NamedRow, kind_flags, write_checks, write_contention, write_contention_titles,
};

use super::analysis::{LockEvents, LockQuery, print};
use super::{columns, entries, live, refuse_columns_of_json, table_options};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::words;
use crate::cli::live::workload;
use crate::cli::options::{flag, is_given, number, switch, unsupported, value};

const ABOUT: &str = "\
Shows how long callers, threads (-t) or locks (-l) waited for locks of the kernel, recorded with 'lock record'. With -b, a command or a target \
(-a, -C, -p, --tid) it shows waits of the running system, which BPF programs sum in the kernel; owners (-o) and cgroups (--lock-cgroup) have rows, too.";

/// The default number of innermost frames that are skipped when the caller is determined, as in perf.
pub(super) const STACK_SKIP: usize = 3;
/// The default maximum number of frames that are read and shown, as in perf.
pub(super) const MAX_STACK: usize = 8;

/// The maximum number of frames that the kernel stores for BPF programs (`PERF_MAX_STACK_DEPTH`), and that it skips for them
/// (`BPF_F_SKIP_FIELD_MASK`).
const MAX_LIVE_STACK: usize = 127;
const MAX_LIVE_SKIP: usize = 255;

/// The columns in order.
const SHOWN: [LockColumn; 4] = [
    LockColumn::Contended,
    LockColumn::Total,
    LockColumn::Max,
    LockColumn::Average,
];

/// The options that select waits of the running system.
fn live_options() -> Vec<Arg> {
    vec![
        switch("use-bpf")
            .short('b')
            .help("sum waits of the running system in the kernel, with BPF programs"),
        switch("all-cpus")
            .short('a')
            .help("waits of the whole system"),
        value("cpu", "cpu")
            .short('C')
            .help("waits that begin on these CPUs: 0,2-3"),
        value("pid", "pid")
            .short('p')
            .help("waits of these processes and their children"),
        value("tid", "tid").help("waits of these threads and their children"),
        switch("user").help(
            "also waits of the running system for locks of user programs (futexes); 'lock record --user' records them",
        ),
        value("map-nr-entries", "n")
            .short('M')
            .value_parser(number)
            .help("maximum number of rows and of stacks in the kernel (default: 10240)"),
        switch("lock-owner")
            .short('o')
            .help("show a row per thread that had the lock: kernel mutexes and semaphores of writers; with --user, mutexes of programs"),
        value("cgroup-filter", "path[,path...]")
            .short('G')
            .help("only waits in these cgroups"),
        switch("lock-cgroup").help("show a row per cgroup"),
        unsupported("inject-delay", "it slows down the holders of locks").short('J'),
        workload::words(),
    ]
}

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("lock contention")
        .long_about(ABOUT)
        .args(live_options())
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
                .help("only locks at these addresses, in hexadecimal, or of the running system with these names"),
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
    let (aggregation, table) = table(matches)?;
    let is_live = live::is_requested(matches);
    if is_live && is_given(matches, "input") {
        return Err(CliError::usage(
            "-i reads a recording; -b, -o, -G, --lock-cgroup, targets and commands show the running system",
        ));
    }
    let frames = |id: &str, default| match matches.get_one::<u64>(id) {
        Some(frames) => usize::try_from(*frames).unwrap_or(usize::MAX),
        None => default,
    };
    let query = LockQuery {
        events: LockEvents::Contention,
        combines: false,
        shows_waiting: true,
        aggregation,
        table,
        selection: selection(matches, is_live, context)?,
        key,
        entries: entries(matches),
        stack_skip: frames("stack-skip", STACK_SKIP),
        max_stack: frames("max-stack", MAX_STACK),
        callstack: words(matches, "callstack-filter"),
    };
    refuse_ignored(matches, &query, is_live)?;
    let separator = matches.get_one::<String>("field-separator");
    let shown = Presentation {
        table,
        columns: &shown,
        separator: separator.map(String::as_str),
    };
    if is_live {
        return live::run(matches, context, &query, &shown);
    }
    print(matches, context, &query, |out, found| {
        shown.write(out, &found.rows, context)?;
        match shown.separator.is_none() && found.shows_checks(matches, context) {
            true => write_checks(out, &found.checks),
            false => Ok(()),
        }
    })
}

/// Refuses options without effect, and numbers of frames beyond the kernel's limits.
fn refuse_ignored(matches: &ArgMatches, query: &LockQuery, is_live: bool) -> Result<(), CliError> {
    refuse_columns_of_json(matches)?;
    if is_live && !(1..=MAX_LIVE_STACK).contains(&query.max_stack) {
        let message = format!(
            "--max-stack {}: BPF programs read 1 to 127 frames",
            query.max_stack
        );
        return Err(CliError::usage(message));
    }
    if is_live && query.stack_skip > MAX_LIVE_SKIP {
        let message = format!(
            "--stack-skip {}: BPF programs skip at most 255 frames",
            query.stack_skip
        );
        return Err(CliError::usage(message));
    }
    Ok(())
}

/// Returns how waits are grouped into rows, and the layout of the table.
fn table(matches: &ArgMatches) -> Result<(LockAggregation, ContentionTable), CliError> {
    let is_on = |id| flag(matches, id) == Some(true);
    let (aggregation, table) = match (is_on("threads"), is_on("lock-addr")) {
        (true, true) => return Err(CliError::usage("-t and -l exclude each other")),
        (true, false) => (LockAggregation::Thread, ContentionTable::Threads),
        (false, true) => (LockAggregation::Address, ContentionTable::Addresses),
        (false, false) => (LockAggregation::Caller, ContentionTable::Callers),
    };
    let table = match (live::own_table(matches), table) {
        (None, table) => table,
        // As in perf, -t may accompany -o.
        (Some(table), ContentionTable::Callers) => table,
        (Some(ContentionTable::Owners), ContentionTable::Threads) => ContentionTable::Owners,
        _ => {
            return Err(CliError::usage(
                "-o and --lock-cgroup exclude -t, -l and each other",
            ));
        }
    };
    Ok((aggregation, table))
}

/// The layout of the table.
pub(super) struct Presentation<'p> {
    pub(super) table: ContentionTable,
    pub(super) columns: &'p [LockColumn],
    /// `-x`.
    pub(super) separator: Option<&'p str>,
}

impl Presentation<'_> {
    /// Writes titles, unless `-q` is given, and rows.
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        rows: &[NamedRow],
        context: &Context,
    ) -> io::Result<()> {
        if !context.output.is_quiet() {
            write_contention_titles(out, self.table, self.columns, self.separator)?;
        }
        write_contention(out, self.table, self.columns, rows, self.separator)
    }
}

/// Parses `--type-filter` and `--lock-filter`.
fn selection(
    matches: &ArgMatches,
    is_live: bool,
    context: &Context,
) -> Result<LockSelection, CliError> {
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
        let addresses = match u64::from_str_radix(digits, 16) {
            Ok(address) => vec![address],
            Err(_) if is_live => live::symbol_addresses(&word, context),
            Err(_) => Vec::new(),
        };
        if addresses.is_empty() {
            return Err(
                CliError::usage(format!("--lock-filter: '{word}' is not an address"))
                    .hint("'lock contention -l' shows the addresses of locks; names are those of the running kernel"),
            );
        }
        selection
            .addresses
            .get_or_insert_default()
            .extend(addresses);
    }
    Ok(selection)
}
