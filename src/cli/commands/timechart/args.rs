//! The options of `timechart`.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use rperf_analysis::timechart::{CallOptions, ChartRange, Highlight, TimechartOptions};

use crate::cli::error::CliError;
use crate::cli::filter::parse_seconds;
use crate::cli::options::{counter, flag, is_given, list, number, switch, value};
use crate::cli::symbol_options::args as symbol_args;
use crate::cli::{input, jobs};

/// The default output file.
const DEFAULT_OUTPUT: &str = "output.svg";
/// The default minimum number of tasks that are drawn.
const DEFAULT_TASKS: u64 = 15;
/// The largest value of `--proc-num`.
const MAX_TASKS: u64 = 10_000;
/// The width in pixels for which details are drawn if `--width` is not given: the width of the window is not known yet.
const DEFAULT_WIDTH: u64 = 1200;
const MIN_WIDTH: u64 = 400;
const MAX_WIDTH: u64 = 100_000;

const ABOUT: &str = "\
Draws what CPUs and tasks did over time as an SVG: which task ran on each CPU, idle states and frequencies, and for each \
task when it ran, waited for a CPU, was blocked or slept, and which task woke it. 'timechart record' records the events. \
Of a recording of 'timechart record -I' it draws the system calls that read, write, send, receive, synchronize and poll.

States narrower than half a pixel are merged into boxes as high as their shares of time, so the size of the picture does \
not depend on the number of events. In a browser, dragging zooms, / searches, and details are shown under the pointer. \
-o FILE.html writes a page, -o FILE.svgz a compressed SVG. \
-o FILE.pftrace writes all events for Perfetto's viewer.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("timechart")
        .long_about(ABOUT)
        .arg(input::force())
        .arg(input::option())
        .arg(
            value("proc-num", "n")
                .short('n')
                .value_parser(number)
                .help("draw at least this many tasks, those with most run time (default: 15)"),
        )
        .arg(
            value("output", "file")
                .short('o')
                .help("output file: .svg, .svgz, .html, or .pftrace for Perfetto's viewer, - for the standard output (default: output.svg)"),
        )
        .arg(list("process", "name|id").short('p').help(
            "draw only tasks with this name, process or thread id; may be repeated",
        ))
        .arg(switch("topology").short('t').help("sort CPUs by socket and core"))
        .arg(
            value("width", "pixels")
                .short('w')
                .value_parser(number)
                .help("width of the picture (default: that of the window)"),
        )
        .arg(value("highlight", "ns|name").help(
            "highlight runs longer than this many nanoseconds, or those of tasks with this name",
        ))
        .arg(value("io-merge-dist", "time").help(
            "draw system calls of one kind as one if at most this time (ns, us, ms) is between them (default: none)",
        ))
        .arg(value("io-min-time", "time").help(
            "draw shorter system calls as long as this (ns, us, ms), up to the next one (default: 0)",
        ))
        .arg(switch("io-skip-eagain").help("skip system calls that fail with EAGAIN"))
        .arg(
            switch("power-only")
                .short('P')
                .help("draw only idle states and frequencies of CPUs"),
        )
        .arg(
            switch("tasks-only")
                .short('T')
                .help(
                    "draw no idle states and frequencies of CPUs; if there are context switches, draw them instead of \
                     system calls",
                ),
        )
        .arg(value("time", "start,end").help("draw only this time range in seconds, with more detail; either may be omitted"))
        .args([symbol_args::vmlinux(), symbol_args::kallsyms(), symbol_args::symfs()])
        .arg(counter("verbose").short('v').help("report problems with symbol tables"))
        .arg(switch("quiet").short('q').help("print neither notes nor warnings"))
        .arg(jobs::option())
}

/// The output format, selected by the extension of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    Picture(ChartFormat),
    /// Events in Perfetto's format.
    Perfetto,
}

/// The format of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartFormat {
    Svg,
    CompressedSvg,
    Html,
}

/// The ids of the options that are refused with Perfetto's format.
const PICTURE_OPTIONS: [&str; 8] = [
    "proc-num",
    "process",
    "topology",
    "width",
    "highlight",
    "io-merge-dist",
    "io-min-time",
    "io-skip-eagain",
];

impl OutputFormat {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("html" | "htm") => Self::Picture(ChartFormat::Html),
            Some("svgz") => Self::Picture(ChartFormat::CompressedSvg),
            Some("pftrace" | "perfetto-trace") => Self::Perfetto,
            _ => Self::Picture(ChartFormat::Svg),
        }
    }
}

/// The parts to record or to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartParts {
    All,
    /// `-P`: idle states and frequencies.
    Power,
    /// `-T`: no idle states and frequencies. If context switches are recorded, they are drawn rather than system calls.
    Tasks,
}

/// The parsed options.
pub(super) struct TimechartRequest {
    pub(super) options: TimechartOptions,
    pub(super) output: PathBuf,
    pub(super) format: OutputFormat,
    /// The width in pixels; `None` for that of the window.
    pub(super) width: Option<u32>,
    pub(super) parts: ChartParts,
    /// `-p`; all tasks if empty.
    pub(super) processes: Vec<String>,
    /// `-n`: the minimum number of tasks that are drawn, if there are as many.
    pub(super) min_tasks: usize,
    pub(super) by_topology: bool,
}

impl TimechartRequest {
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let text = |id| matches.get_one::<String>(id).map(String::as_str);
        let width = matches.get_one::<u64>("width").copied();
        if width.is_some_and(|width| !(MIN_WIDTH..=MAX_WIDTH).contains(&width)) {
            let message = format!("--width: give {MIN_WIDTH} to {MAX_WIDTH} pixels");
            return Err(CliError::usage(message));
        }
        let count = matches.get_one::<u64>("proc-num").copied();
        let count = count.unwrap_or(DEFAULT_TASKS);
        if count > MAX_TASKS {
            let message = format!("--proc-num: give at most {MAX_TASKS}");
            return Err(CliError::usage(message));
        }
        let output = PathBuf::from(text("output").unwrap_or(DEFAULT_OUTPUT));
        let format = OutputFormat::of(&output);
        let mut picture_options = PICTURE_OPTIONS.iter();
        if format == OutputFormat::Perfetto
            && let Some(option) = picture_options.find(|id| is_given(matches, id))
        {
            let message = format!("--{option} applies to pictures, not to Perfetto's format");
            return Err(CliError::usage(message));
        }
        let processes = matches.get_many::<String>("process").unwrap_or_default();
        Ok(Self {
            options: TimechartOptions {
                // States shorter than a cell are merged. The chart has at most twice as many cells as requested: each is at
                // least half a pixel wide.
                cells: width.unwrap_or(DEFAULT_WIDTH),
                range: time_range(text("time"))?,
                highlight: text("highlight").map(highlight),
                calls: CallOptions {
                    skip_eagain: flag(matches, "io-skip-eagain") == Some(true),
                    min_time: duration(matches, "io-min-time")?,
                    merge_distance: duration(matches, "io-merge-dist")?,
                },
            },
            format,
            output,
            width: width.and_then(|width| u32::try_from(width).ok()),
            parts: parts(matches)?,
            processes: processes.cloned().collect(),
            min_tasks: usize::try_from(count).unwrap_or(usize::MAX),
            by_topology: flag(matches, "topology") == Some(true),
        })
    }
}

/// Reads `-P` and `-T`.
pub(super) fn parts(matches: &ArgMatches) -> Result<ChartParts, CliError> {
    let is_set = |id| flag(matches, id) == Some(true);
    match (is_set("power-only"), is_set("tasks-only")) {
        (true, true) => Err(CliError::message(
            255,
            "-P and -T options cannot be used at the same time.",
        )),
        (true, false) => Ok(ChartParts::Power),
        (false, true) => Ok(ChartParts::Tasks),
        (false, false) => Ok(ChartParts::All),
    }
}

fn highlight(word: &str) -> Highlight {
    match word.parse() {
        Ok(nanos) => Highlight::LongerThan(nanos),
        Err(_) => Highlight::Name(word.as_bytes().to_vec()),
    }
}

/// Parses a number with `ns` (default), `us` or `ms` into nanoseconds; 0 if the option is not given.
fn duration(matches: &ArgMatches, id: &str) -> Result<u64, CliError> {
    let Some(word) = matches.get_one::<String>(id) else {
        return Ok(0);
    };
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("", 1)];
    let mut parsed = units.iter().filter_map(|(unit, factor)| {
        let number: u64 = word.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*factor)
    });
    parsed.next().ok_or_else(|| {
        CliError::usage(format!(
            "--{id}: '{word}' is not a time; give nanoseconds, or a number with us or ms"
        ))
    })
}

/// Parses `START,END` in seconds into nanoseconds; a missing start is 0, a missing end the end of the recording.
fn time_range(text: Option<&str>) -> Result<ChartRange, CliError> {
    let Some(text) = text else {
        return Ok(ChartRange::ALL);
    };
    let (start, end) = text.split_once(',').unwrap_or((text, ""));
    let end = match end.trim() {
        "" => Some(u64::MAX),
        end => parse_seconds(end),
    };
    // `parse_seconds` returns 0 for an empty start.
    let bounds = parse_seconds(start).zip(end);
    let range = bounds.map(|(first, last)| ChartRange { first, last });
    range
        .filter(|range| range.first < range.last)
        .ok_or_else(|| {
            // 234 is perf's exit status for an invalid `--time`: -EINVAL.
            CliError::message(234, "Invalid time string").hint(
                "give START,END in seconds, as shown above the picture; either may be omitted",
            )
        })
}
