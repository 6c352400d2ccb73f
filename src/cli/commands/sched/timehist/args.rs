//! The options of `sched timehist`.

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::sched::timehist::TimeHistoryOptions;
use rperf_view::sched::timehist::TimeColumns;

use crate::cli::commands::sched::common;
use crate::cli::commands::sched::task_lists::ids;
use crate::cli::error::CliError;
use crate::cli::filter::{cpus, parse_seconds, words};
use crate::cli::jobs;
use crate::cli::options::{flag, number, switch, value};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Prints a row for each time that a task is switched out: how long it had been off the CPU (wait time), how long of that \
since its wakeup (scheduling delay), and how long it ran, in milliseconds. With callchains (sched record -g), the row ends with \
the stack.";

/// The default for the maximum number of frames of a stack.
const MAX_STACK: usize = 5;
/// The largest priority number, which is the lowest priority: 0 to 99 are for real-time tasks, 100 to 139 for others.
const MAX_PRIORITY: i32 = 139;

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched timehist")
        .long_about(ABOUT)
        .args(filters())
        .args(output())
        .args([
            symbol_args::vmlinux(),
            symbol_args::kallsyms(),
            symbol_args::symfs(),
        ])
        .args(common())
        .arg(jobs::option())
}

fn filters() -> [Arg; 5] {
    [
        value("cpu", "cpu[,cpu...]")
            .short('C')
            .help("only these CPUs: 0,2-3"),
        value("pid", "pid[,pid...]")
            .short('p')
            .help("only tasks of these processes"),
        value("tid", "tid[,tid...]")
            .short('t')
            .help("only these threads"),
        value("time", "start,end")
            .help("only this time range in seconds; start or end may be omitted"),
        value("prio", "prio[,prio...]")
            .help("only tasks with these priorities: 120, or 0-99 for real-time tasks"),
    ]
}

/// The options for what is shown: columns, rows and the summary.
fn output() -> Vec<Arg> {
    vec![
        switch("call-graph")
            .short('g')
            .help("show stacks if the recording has callchains (default: on)"),
        value("max-stack", "n")
            .value_parser(number)
            .help("show at most this many frames of a stack (default: 5)"),
        switch("idle-hist").short('I').help("show idle times only"),
        switch("migrations").short('M').help("show migrations"),
        switch("next").short('n').help("show the next task"),
        switch("pre-migrations")
            .short('P')
            .help("show the time from wakeup to the first migration"),
        switch("show-prio").help("show priorities"),
        switch("state").help("show the state in which the task is switched out"),
        switch("summary")
            .short('s')
            .help("show only the summary: sums by task and CPU"),
        switch("with-summary")
            .short('S')
            .help("show rows and the summary"),
        switch("cpu-visual")
            .short('V')
            .help("show a picture of the CPUs: s switch, i idle, m migration"),
        switch("wakeups").short('w').help("show wakeups"),
    ]
}

/// The values of the options. The number of CPUs in [`Self::options`] depends on the recording: it is set later.
pub(super) struct TimehistRequest {
    pub(super) options: TimeHistoryOptions,
    pub(super) columns: TimeColumns,
    pub(super) max_stack: usize,
    pub(super) is_summary_only: bool,
    pub(super) with_summary: bool,
}

impl TimehistRequest {
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let is_set = |id| flag(matches, id) == Some(true);
        let is_summary_only = is_set("summary");
        if is_summary_only && (is_set("wakeups") || is_set("next")) {
            // perf's message, with its leading blank.
            return Err(CliError::usage(
                " Error: -s and -[n|w] are mutually exclusive.",
            ));
        }
        let max_stack = matches.get_one::<u64>("max-stack").copied();
        let max_stack = max_stack.map_or(MAX_STACK, |frames| {
            usize::try_from(frames).unwrap_or(usize::MAX)
        });
        let (start, end) = time_range(matches)?;
        let idle_only = is_set("idle-hist");
        Ok(Self {
            options: TimeHistoryOptions {
                start,
                end,
                cpus: cpus(matches)?,
                pids: ids(matches, "pid")?,
                tids: ids(matches, "tid")?,
                priorities: priorities(matches)?,
                idle_only,
                with_wakeups: is_set("wakeups"),
                with_migrations: is_set("migrations"),
                with_pre_migration_times: is_set("pre-migrations"),
                cpu_count: 0,
            },
            columns: TimeColumns {
                // The picture of the CPUs, not the selection above.
                cpus: is_set("cpu-visual"),
                priority: is_set("show-prio"),
                before_migration: is_set("pre-migrations"),
                state: is_set("state"),
                next: is_set("next"),
                wakeups: is_set("wakeups"),
                stacks: flag(matches, "call-graph") != Some(false),
                // Selects the layout of the summary, whereas `TimeHistoryOptions::idle_only` selects what is counted.
                idle_only,
            },
            max_stack,
            is_summary_only,
            with_summary: is_summary_only || is_set("with-summary"),
        })
    }
}

/// Parses `120,0-99` into ranges, both ends included.
fn priorities(matches: &ArgMatches) -> Result<Option<Vec<(i32, i32)>>, CliError> {
    let parsed = words(matches, "prio").map(|words| {
        let ranges = words.iter().map(|word| {
            let (low, high) = word.split_once('-').unwrap_or((word, word));
            let bounds = low.parse().ok().zip(high.parse().ok());
            bounds
                .filter(|(low, high)| 0 <= *low && low <= high && *high <= MAX_PRIORITY)
                .ok_or_else(|| {
                    CliError::usage(format!(
                        "--prio: '{word}' is not a priority from 0 to {MAX_PRIORITY} or a range of priorities"
                    ))
                })
        });
        ranges.collect()
    });
    parsed.transpose()
}

/// Parses `--time START,END`, in seconds, into nanoseconds. A bound that is not given is 0: no limit.
fn time_range(matches: &ArgMatches) -> Result<(u64, u64), CliError> {
    let Some(text) = matches.get_one::<String>("time") else {
        return Ok((0, 0));
    };
    let (start, end) = text.split_once(',').unwrap_or((text, ""));
    // `parse_seconds` returns 0 for an empty text.
    let bounds = parse_seconds(start).zip(parse_seconds(end));
    bounds
        .filter(|(start, end)| *end == 0 || start <= end)
        .ok_or_else(|| {
            // 234 is the exit status of perf: -EINVAL.
            CliError::message(234, "Invalid time string").hint(
                "give START,END in seconds, as printed by 'sched timehist'; either may be omitted",
            )
        })
}
