//! The options of `sched off-cpu`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::sched::off_cpu::OffCpuOptions;

use crate::cli::commands::sched::task_lists::ids;
use crate::cli::commands::sched::without_dump;
use crate::cli::error::CliError;
use crate::cli::jobs;
use crate::cli::options::{flag, number, optional, switch, value};
use crate::cli::shared::flame_output::PictureFormat;
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Shows the time that tasks do not run, by task, by state and by the stack at the switch (sched record -g). A sleep lasts from \
the switch to the wakeup, the time in a run queue from the wakeup or the preemption to the switch to the task. Waits that have not ended \
by the end of the recording are not counted.

--wakers also divides sleeps by the stacks of the tasks that end them: first the waker's, then that of the task which had woken the \
waker. -o, --format and --title draw a flame graph, --folded prints folded stacks; in these, a frame such as [interruptible sleep] or \
[run queue (woken)] follows the task.";

/// The default of `--rows`.
const DEFAULT_ROWS: usize = 20;
/// The number of frames that text shows unless `--max-stack` is given.
const SHOWN_FRAMES: usize = 8;
/// The default of `--max-stack`, and of the sysctl kernel.perf_event_max_stack.
const DEFAULT_MAX_STACK: usize = 127;
/// The maximum of `--wakers`.
const MAX_WAKERS: u64 = 8;

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched off-cpu")
        .long_about(ABOUT)
        .args(selection())
        .args(output())
        .args([
            symbol_args::vmlinux(),
            symbol_args::kallsyms(),
            symbol_args::symfs(),
        ])
        // The common options of `sched`, except -D.
        .args(without_dump())
        .arg(jobs::option())
}

fn selection() -> [Arg; 4] {
    [
        value("pid", "pid[,pid...]")
            .short('p')
            .help("only tasks of these processes"),
        value("tid", "tid[,tid...]")
            .short('t')
            .help("only these threads"),
        optional("wakers", "n", "2")
            .short('w')
            .value_parser(number)
            .help("divide sleeps by waker, then by the waker of the waker, and so on: n levels, at most 8 (default: 0; without n: 2)"),
        value("max-stack", "n")
            .value_parser(number)
            .help("use at most this many frames of a stack (default: 127, of which text shows 8)"),
    ]
}

fn output() -> [Arg; 6] {
    [
        value("rows", "n")
            .value_parser(number)
            .help("number of rows that are listed with their stacks (default: 20; 0: all)"),
        switch("json").help("print all rows as JSON, in nanoseconds"),
        switch("folded").help("write folded stacks, one per line"),
        value("format", "svg|html|json")
            .help("draw a flame graph: svg (default with -o or --title), html, or json, a tree of frames"),
        value("output", "file")
            .short('o')
            .help("output file, - for the standard output (default: flamegraph.svg, .html or .json by format; with --folded: -)"),
        value("title", "text").help("title of the flame graph"),
    ]
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffCpuOutput {
    Text,
    Json,
    Folded,
    Picture(PictureFormat),
}

/// The values of the options.
pub(super) struct OffCpuRequest {
    pub(super) options: OffCpuOptions,
    pub(super) output: OffCpuOutput,
    /// Output file of a picture or of folded stacks; `None` for the default.
    pub(super) path: Option<PathBuf>,
    /// Title of a picture.
    pub(super) title: Option<String>,
    /// Maximum number of frames that are used of a stack.
    pub(super) max_stack: usize,
    /// Maximum number of these frames that text shows.
    pub(super) shown_frames: usize,
    /// Maximum number of rows in text; 0: all.
    pub(super) max_rows: usize,
}

impl OffCpuRequest {
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let count = |id: &str| {
            let given = matches.get_one::<u64>(id);
            given.map(|given| usize::try_from(*given).unwrap_or(usize::MAX))
        };
        let wakers = count("wakers").unwrap_or_default();
        if wakers as u64 > MAX_WAKERS {
            return Err(CliError::usage(format!(
                "--wakers: give a number up to {MAX_WAKERS}"
            )));
        }
        let max_stack = count("max-stack");
        Ok(Self {
            options: OffCpuOptions {
                pids: ids(matches, "pid")?,
                tids: ids(matches, "tid")?,
                max_wakers: wakers,
            },
            output: output_of(matches)?,
            path: matches.get_one::<String>("output").map(PathBuf::from),
            title: matches.get_one::<String>("title").cloned(),
            max_stack: max_stack.unwrap_or(DEFAULT_MAX_STACK),
            shown_frames: max_stack.unwrap_or(SHOWN_FRAMES),
            max_rows: count("rows").unwrap_or(DEFAULT_ROWS),
        })
    }
}

fn output_of(matches: &ArgMatches) -> Result<OffCpuOutput, CliError> {
    let is_given = |id: &str| matches.get_one::<String>(id).is_some();
    let is_set = |id| flag(matches, id) == Some(true);
    let format = matches.get_one::<String>("format");
    let format = format.map(|word| PictureFormat::parse(word)).transpose()?;
    if is_set("folded") && (format.is_some() || is_given("title")) {
        return Err(CliError::usage(
            "--folded excludes --format and --title: folded stacks are text",
        ));
    }
    let draws = format.is_some() || is_given("output") || is_given("title");
    if is_set("json") && (draws || is_set("folded")) {
        return Err(CliError::usage(
            "--json excludes --folded, --format, -o and --title: it prints rows",
        ));
    }
    Ok(match format {
        _ if is_set("json") => OffCpuOutput::Json,
        _ if is_set("folded") => OffCpuOutput::Folded,
        Some(format) => OffCpuOutput::Picture(format),
        None if draws => OffCpuOutput::Picture(PictureFormat::Svg),
        None => OffCpuOutput::Text,
    })
}
