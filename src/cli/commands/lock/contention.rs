//! `lock contention`: the time waited for locks, by caller, thread, lock, owner or cgroup.

use std::io::{self, Write};

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::lock::{LockAggregation, LockColumn, LockSelection};
use rperf_view::lock::{
    ContentionLayout, ContentionTable, NamedRow, kind_flags, write_checks, write_contention,
    write_contention_titles,
};

use super::analysis::{LockEvents, LockQuery, print};
use super::{
    VERBOSE, columns, entries, holders, live, lock_names, refuse_columns_of_json, run_queue_use,
    table_options,
};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::words;
use crate::cli::live::workload;
use crate::cli::options::{count, flag, is_given, number, switch, unsupported, value};

const ABOUT: &str = "\
Shows the time waited for locks per caller, per thread (-t) or per lock (-l), recorded with 'lock record'. With -b, a command or a target \
(-a, -C, -p, --tid) it shows waits of the running system, which BPF programs sum in the kernel. Rows can also be owners (-o) or cgroups (--lock-cgroup). \
Recordings have owners with 'lock record --owners' and --user, cgroups with 'lock record --all-cgroups'.";

/// The default number of innermost frames skipped when the caller is determined, as in perf 6.1; perf 6.2 and later skip 4.
pub(super) const STACK_SKIP: usize = 3;
/// The default maximum number of frames that are read and shown, as in perf.
pub(super) const MAX_STACK: usize = 8;

/// The maximum number of frames that the kernel stores for BPF programs (`PERF_MAX_STACK_DEPTH`).
const MAX_LIVE_STACK: usize = 127;
/// The maximum number of frames that the kernel skips for BPF programs (`BPF_F_SKIP_FIELD_MASK`).
const MAX_LIVE_SKIP: usize = 255;
/// The maximum of `-M`. Larger maps need gigabytes of the kernel's memory.
const MAX_MAP_ROWS: u64 = 1 << 24;

/// The hint for an unknown type of lock.
const TYPES: &str = "the types are spinlock, mutex, mutex:spin, semaphore, rt-mutex, futex and futex:PI, and rwlock, rwsem, rwlock-rt and pcpu-sem (percpu-rwsem), which :R or :W may follow";

/// The columns shown by default, in order.
const SHOWN: [LockColumn; 4] = [
    LockColumn::Contended,
    LockColumn::Total,
    LockColumn::Max,
    LockColumn::Average,
];

/// The names of the columns in `-k` and `-F`.
const COLUMN_NAMES: [&str; 6] = [
    "contended",
    "wait_total",
    "wait_max",
    "wait_min",
    "avg_wait",
    "run_queue",
];

/// The options for waits of the running system; some apply to recordings, too.
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
            .help("show a row per thread that had the lock: kernel mutexes and semaphores of writers (recordings: 'lock record --owners'), with --user mutexes of programs"),
        value("cgroup-filter", "path[,path...]")
            .short('G')
            .help("only waits of threads in these cgroups; recordings need 'lock record --all-cgroups'"),
        switch("lock-cgroup")
            .short('g')
            .help("show a row per cgroup; recordings need 'lock record --all-cgroups'"),
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
            switch("lock-addr").short('l').help("show a row per lock, by address, with its name if it is known"),
            value("max-stack", "n").value_parser(number).help(
                "number of innermost frames to read (default: 8, with --svg 127): \
                waits with equal frames share a row, -v shows them",
            ),
            value("stack-skip", "n")
                .value_parser(number)
                .help("number of innermost frames to skip when determining the caller (default: 3, of user programs 0); functions of locks and of the C library are skipped, too"),
            value("type-filter", "type[,type...]")
                .short('Y')
                .help("only these types: spinlock, mutex, rwlock, rwsem:R, semaphore, rt-mutex, futex, ..."),
            value("lock-filter", "lock[,lock...]")
                .short('L')
                .help("only these locks: addresses in hexadecimal, or names as -l shows them"),
            value("callstack-filter", "name[,name...]")
                .short('S')
                .help("only waits with a function in their stack that has one of these words in its name"),
            switch("holders").help(
                "show what the holders of futexes did while others waited, from a recording of 'lock record --user --holders'",
            ),
            value("svg", "file").help(
                "draw the waits of callers, or with --holders the time of holders, as a flame graph in this file; - for the standard output",
            ),
            switch("histogram").help("show the distribution of the waits below each row; --json has it in any case"),
            value("field-separator", "text")
                .short('x')
                .help("print separated values, times in nanoseconds"),
        ])
        .args(table_options(
            "column to sort by: contended, wait_total, wait_max, wait_min, avg_wait, run_queue (default: wait_total)",
            VERBOSE,
        ))
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let (key, shown) = columns(matches, LockColumn::Total, &SHOWN, &COLUMN_NAMES)?;
    let (aggregation, table) = table(matches)?;
    let is_live = live::is_requested(matches);
    live::refuse_reading_options(matches)?;
    let frames = |id: &str, default| match matches.get_one::<u64>(id) {
        Some(frames) => usize::try_from(*frames).unwrap_or(usize::MAX),
        None => default,
    };
    let query = LockQuery {
        events: LockEvents::Contention,
        // With `-l`, locks of one name keep separate rows; `lock report` can combine them.
        combines_locks: false,
        // Rows are shown even if none of their waits ended.
        shows_unended_waits: true,
        aggregation,
        table,
        selection: selection(matches)?,
        run_queue: run_queue_use(matches, &shown),
        lock_names: lock_names::names(matches),
        cgroups: words(matches, "cgroup-filter"),
        key,
        entries: entries(matches),
        stack_skip: frames("stack-skip", STACK_SKIP),
        user_stack_skip: frames("stack-skip", 0),
        max_stack: frames("max-stack", default_max_stack(matches)),
        callstack_filter: words(matches, "callstack-filter"),
    };
    check_options(matches, &query, is_live)?;
    refuse_table_options(matches, &query, is_live)?;
    if flag(matches, "holders") == Some(true) {
        return holders::run(matches, context, &query);
    }
    let separator = matches.get_one::<String>("field-separator");
    let with_histograms = flag(matches, "histogram") == Some(true);
    let layout = ContentionLayout {
        table,
        columns: &shown,
        separator: separator.map(String::as_str),
        with_histograms,
        // The container of each cgroup, below the row of the cgroup.
        with_containers: with_histograms || count(matches, "verbose") > 0,
    };
    if is_live {
        return live::run(matches, context, &query, &layout);
    }
    print(matches, context, &query, |out, lock_table| {
        write_rows(out, &layout, &lock_table.rows, context)?;
        match layout.separator.is_none() && lock_table.shows_checks(matches, context) {
            true => write_checks(out, &lock_table.checks),
            false => Ok(()),
        }
    })
}

/// Returns the default maximum number of frames. For a flame graph, it is the number that the kernel stores at most for BPF
/// programs and, by default, in recordings.
fn default_max_stack(matches: &ArgMatches) -> usize {
    match is_given(matches, "svg") {
        true => MAX_LIVE_STACK,
        false => MAX_STACK,
    }
}

/// Refuses options that `--holders` or `--svg` excludes. Both exclude options of the table of waits, since they do not print it.
/// `--svg` also excludes `--json` and `--output`; `--holders` also excludes options that select waits or the running system.
fn refuse_table_options(
    matches: &ArgMatches,
    query: &LockQuery,
    is_live: bool,
) -> Result<(), CliError> {
    let has_holders = flag(matches, "holders") == Some(true);
    let has_svg = is_given(matches, "svg");
    let option = match (has_holders, has_svg) {
        (true, _) => "--holders",
        (false, true) => "--svg",
        (false, false) => return Ok(()),
    };
    if has_holders && is_live {
        return Err(CliError::usage("--holders reads a recording").hint(
            "record with 'lock record --user --holders'; -b, -p and others show the running system",
        ));
    }
    if query.table != ContentionTable::Callers {
        let message = format!("{option} excludes -t, -l, -o and --lock-cgroup");
        return Err(CliError::usage(message));
    }
    // The id and the text of an option, and whether it is excluded.
    let mut excluded = [
        ("histogram", "--histogram", true),
        ("json", "--json", has_svg),
        ("output", "--output", has_svg),
        ("field-separator", "-x", true),
        ("field", "-F", true),
        ("key", "-k", true),
        ("callstack-filter", "-S", has_holders),
        ("lock-filter", "-L", has_holders),
        ("type-filter", "-Y", has_holders),
        ("cgroup-filter", "-G", has_holders),
        ("stack-skip", "--stack-skip", has_holders),
    ]
    .into_iter();
    match excluded.find(|(id, _, is_excluded)| *is_excluded && is_given(matches, id)) {
        Some((_, other, _)) => Err(CliError::usage(format!(
            "{option} and {other} exclude each other"
        ))),
        None => Ok(()),
    }
}

/// Refuses combinations of options of which one has no effect, empty filters, and numbers that are out of range.
fn check_options(matches: &ArgMatches, query: &LockQuery, is_live: bool) -> Result<(), CliError> {
    refuse_columns_of_json(matches)?;
    if flag(matches, "histogram") == Some(true) {
        for (id, option, hint) in [
            (
                "json",
                "--json",
                "the rows of --json have histograms in any case",
            ),
            (
                "field-separator",
                "-x",
                "the rows of --json have histograms",
            ),
        ] {
            if is_given(matches, id) {
                let message = format!("--histogram and {option} exclude each other");
                return Err(CliError::usage(message).hint(hint));
            }
        }
    }
    refuse_empty_lists(matches)?;
    let rows = matches.get_one::<u64>("map-nr-entries");
    if let Some(rows) = rows.filter(|rows| !(1..=MAX_MAP_ROWS).contains(*rows)) {
        let message = format!("-M {rows}: BPF maps have 1 to {MAX_MAP_ROWS} rows");
        return Err(CliError::usage(message));
    }
    if is_live && !(1..=MAX_LIVE_STACK).contains(&query.max_stack) {
        let message = format!(
            "--max-stack {}: BPF programs read 1 to {MAX_LIVE_STACK} frames",
            query.max_stack
        );
        return Err(CliError::usage(message));
    }
    if is_live && query.stack_skip > MAX_LIVE_SKIP {
        let message = format!(
            "--stack-skip {}: BPF programs skip at most {MAX_LIVE_SKIP} frames",
            query.stack_skip
        );
        return Err(CliError::usage(message));
    }
    Ok(())
}

/// Refuses filters and targets without a name or number.
fn refuse_empty_lists(matches: &ArgMatches) -> Result<(), CliError> {
    for (id, option, what) in [
        ("type-filter", "-Y", "name"),
        ("lock-filter", "-L", "name"),
        ("callstack-filter", "-S", "name"),
        ("cgroup-filter", "-G", "name"),
        ("cpu", "-C", "CPU"),
        ("pid", "-p", "process"),
        ("tid", "--tid", "thread"),
    ] {
        if words(matches, id).is_some_and(|words| words.is_empty()) {
            let message = format!("{option} needs at least one {what}");
            return Err(CliError::usage(message));
        }
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
    let [by_owner, by_cgroup] = ["lock-owner", "lock-cgroup"].map(is_on);
    Ok(match (by_owner, by_cgroup, table) {
        (false, false, table) => (aggregation, table),
        // As in perf, -t may accompany -o.
        (true, false, ContentionTable::Callers | ContentionTable::Threads) => {
            (LockAggregation::Owner, ContentionTable::Owners)
        }
        (false, true, ContentionTable::Callers) => {
            (LockAggregation::Cgroup, ContentionTable::Cgroups)
        }
        _ => {
            return Err(CliError::usage(
                "--lock-cgroup excludes -t, -l and -o; -o excludes -l",
            ));
        }
    })
}

/// Writes the titles, unless `-q` is given, and the rows.
pub(super) fn write_rows(
    out: &mut dyn Write,
    layout: &ContentionLayout<'_>,
    rows: &[NamedRow],
    context: &Context,
) -> io::Result<()> {
    if !context.output.is_quiet() {
        write_contention_titles(out, layout)?;
    }
    write_contention(out, layout, rows)
}

/// Parses `--type-filter`, and the addresses of `--lock-filter`.
fn selection(matches: &ArgMatches) -> Result<LockSelection, CliError> {
    let mut selection = LockSelection::default();
    for word in words(matches, "type-filter").unwrap_or_default() {
        let flags = kind_flags(&word);
        if flags.is_empty() {
            return Err(CliError::usage(format!("Unknown lock flags: {word}")).hint(TYPES));
        }
        selection.flags.get_or_insert_default().extend(flags);
    }
    selection.addresses = lock_names::addresses(matches);
    Ok(selection)
}
