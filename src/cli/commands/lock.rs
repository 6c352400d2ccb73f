//! `rperf lock`: records waits for locks of the kernel and of user programs, and analyses them.

mod analysis;
mod cgroup_filter;
mod contention;
mod deadlock;
mod details;
mod flame;
mod holders;
mod info;
mod live;
mod live_owners;
mod lock_names;
mod machine_threads;
mod output;
mod record;
mod report;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::lock::LockColumn;

use self::analysis::RunQueueUse;
pub(super) use self::contention::{command as contention_command, run as contention};
pub(super) use self::deadlock::{command as deadlock_command, run as deadlock};
pub(super) use self::info::{command as info_command, run as info};
pub(super) use self::report::{command as report_command, run as report};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::words;
use crate::cli::input;
use crate::cli::jobs;
use crate::cli::options::{counter, flag, given_value, number, switch, value};
use crate::cli::shared::subcommands::{self, split_words, words_option};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
'lock record' records waits for locks of the kernel, with --user also those of user programs, with --owners also who had the locks. 'lock contention' shows the time waited per caller, per thread (-t) or per lock (-l). \
'lock deadlock' shows which threads of running processes, or of a recording, wait for each other. 'lock report' prints a row per lock, 'lock info' lists threads and locks, 'lock script' each event. \
The tables of 'lock contention', 'lock report' and 'lock info' are printed on the standard error as in perf, --json on the standard output.";

const SUBCOMMANDS: &str = "use 'lock record', 'lock report', 'lock info', 'lock contention', 'lock deadlock' or 'lock script'";

/// The help of `-v` of the subcommands that also show stacks and threads with it.
const VERBOSE: &str =
    "show stacks and threads, and list all stretches of time in which records were lost";

/// The subcommands that may be abbreviated, to at least three letters, as in perf.
const ABBREVIATED: &[&str] = &[
    "record",
    "report",
    "script",
    "info",
    "contention",
    "deadlock",
];

/// The options of `lock` itself: `lock report`, `lock contention` and `lock info` have them as well. `verbose` is the help of
/// `-v`.
fn reading_options(verbose: &'static str) -> Vec<Arg> {
    let mut all = vec![
        switch("dump-raw-trace")
            .short('D')
            .help("first print every record, in hexadecimal and decoded"),
        output::option(),
    ];
    all.extend(common(verbose));
    all
}

/// The options of `lock` itself and of all subcommands that read a recording. `verbose` is the help of `-v`.
fn common(verbose: &'static str) -> Vec<Arg> {
    vec![
        input::force(),
        input::option(),
        switch("quiet")
            .short('q')
            .help("print neither titles nor warnings"),
        counter("verbose").short('v').help(verbose),
        // -k is the sort key of subcommands that print a table.
        symbol_args::vmlinux().short(None),
        symbol_args::kallsyms(),
        symbol_args::symfs(),
    ]
}

/// The options of the subcommands that print a table. `keys` is the help of `-k`, `verbose` that of `-v`.
fn table_options(keys: &'static str, verbose: &'static str) -> Vec<Arg> {
    let mut all = vec![
        value("entries", "n")
            .short('E')
            .value_parser(number)
            .help("show only the first n rows (default: all)"),
        value("field", "column[,column...]")
            .short('F')
            .help("show only these columns; with run_queue, the time that waiting threads wait for a CPU is no part of the waits"),
        value("key", "column").short('k').help(keys),
        switch("threads").short('t').help("show a row per thread"),
        switch("json").help("print rows as JSON, times in nanoseconds"),
        jobs::option(),
    ];
    all.extend(reading_options(verbose));
    all
}

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("lock")
        .long_about(ABOUT)
        .args(reading_options(VERBOSE))
        .arg(words_option())
}

/// Returns the complete name of an abbreviated subcommand.
pub(super) fn full_name(word: &str) -> &str {
    subcommands::full_name(word, ABBREVIATED)
}

/// Runs `lock record` and `lock script`; refuses unknown subcommands. The other subcommands are commands of their own.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let (name, rest) = split_words("lock", SUBCOMMANDS, matches, context)?;
    match full_name(&name) {
        "record" => record::run(&rest, matches, context),
        "script" => record::script(&rest, matches, context),
        _ => Err(subcommands::unknown_subcommand(
            "lock",
            &name,
            SUBCOMMANDS,
            context,
        )),
    }
}

/// Returns the maximum number of rows (`-E`); as in perf, 0 is no limit.
fn entries(matches: &ArgMatches) -> usize {
    let most = matches.get_one::<u64>("entries");
    let most = most.filter(|most| **most > 0);
    most.map_or(usize::MAX, |most| {
        usize::try_from(*most).unwrap_or(usize::MAX)
    })
}

/// Refuses `-F` and `-x` with `--json`, whose objects have all values.
///
/// # Errors
///
/// Status 129.
fn refuse_columns_of_json(matches: &ArgMatches) -> Result<(), CliError> {
    let is_json = flag(matches, "json") == Some(true);
    let mut ignored = [("field", "-F"), ("field-separator", "-x")].into_iter();
    match ignored.find(|(id, _)| given_value::<String>(matches, id).is_some()) {
        Some((_, option)) if is_json => Err(CliError::usage(format!(
            "{option} and --json exclude each other"
        ))
        .hint("the rows of --json have all values; -k sorts them")),
        _ => Ok(()),
    }
}

/// Returns how the time in run queues is used: if its column is shown, it is no part of the waits; otherwise it is a part of
/// them, and only --json shows it.
fn run_queue_use(matches: &ArgMatches, shown: &[LockColumn]) -> RunQueueUse {
    match (
        shown.contains(&LockColumn::RunQueue),
        flag(matches, "json") == Some(true),
    ) {
        (true, _) => RunQueueUse::Separate,
        (false, true) => RunQueueUse::Shown,
        (false, false) => RunQueueUse::Ignored,
    }
}

/// Parses `-k` and `-F`, whose words must be among `known`. Returns the column to sort by, and the columns to show, which include it.
fn columns(
    matches: &ArgMatches,
    default_key: LockColumn,
    default_shown: &[LockColumn],
    known: &[&str],
) -> Result<(LockColumn, Vec<LockColumn>), CliError> {
    let hint = || format!("the columns are {}", known.join(", "));
    let parse = |option: &str, word: &str| {
        let column = LockColumn::named(word).filter(|_| known.contains(&word));
        column.ok_or_else(|| CliError::usage(format!("Unknown --{option}: '{word}'")).hint(hint()))
    };
    let key = match matches.get_one::<String>("key") {
        Some(word) => parse("key", word)?,
        None => default_key,
    };
    let given = match words(matches, "field") {
        Some(list) if list.is_empty() => {
            return Err(CliError::usage("-F needs at least one column").hint(hint()));
        }
        Some(list) => {
            let columns = list.iter().map(|word| parse("field", word.trim()));
            columns.collect::<Result<Vec<_>, _>>()?
        }
        None => default_shown.to_vec(),
    };
    // As in perf, a column is shown once.
    let mut shown = Vec::new();
    for column in given.into_iter().chain([key]) {
        if !shown.contains(&column) {
            shown.push(column);
        }
    }
    Ok((key, shown))
}
