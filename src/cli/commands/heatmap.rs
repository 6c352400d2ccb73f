//! `rperf heatmap`: draws the times of samples, or latencies, as a heat map.

mod latency;
mod latency_text;
mod subsecond;

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use rperf_analysis::FilteredSamples;
use rperf_flame::{HeatMap, amount};
use rperf_resolve::Resolver;
use rperf_resolve::SampleCriteria;

use self::latency::LatencyEvents;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::{RequestedFilters, args as filter_args};
use crate::cli::input::{self, Input};
use crate::cli::jobs::jobs;
use crate::cli::options::{flag, is_given, number, switch, value};
use crate::cli::output_file::write_to;
use crate::cli::shared::analysis::Analysis;
use crate::cli::symbol_options::{SymbolSources, args as symbol_args};

/// The default output file.
const DEFAULT_OUTPUT: &str = "heatmap.svg";
/// The default number of rows: if each column is one second, a row has 20 milliseconds.
const ROWS: u64 = 50;
/// Maximum number of rows, and of columns of a latency heat map.
const MAX_SIDE: u64 = 1000;
/// The default number of columns of a latency heat map.
const COLUMNS: u64 = 100;

const ABOUT: &str = "\
Draws the times of samples as a subsecond-offset heat map: each column is one second, time within the second runs \
upwards, and darker cells have more samples. Periodic work, bursts and pauses show as patterns. Two clicks select a time \
range; the page shows it as --time START,END for report, script and flamegraph, and keeps it in the URL.

With --from and --to it draws latencies: the time from a sample of the first event to the next sample of the second \
event with the same key, with time as columns and latency as rows. The key is the thread, or the fields that --key \
names, which both tracepoints must have: dev,sector for block:block_rq_issue and block:block_rq_complete.";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("heatmap")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(
            value("output", "file")
                .short('o')
                .help("output file, - for the standard output (default: heatmap.svg)"),
        )
        .arg(input::force())
        .arg(
            switch("quiet")
                .short('q')
                .help("print neither notes nor warnings"),
        )
        .arg(
            value("event", "name")
                .short('e')
                .help("event to draw (default: offcpu-time, otherwise the one with most samples)"),
        )
        .arg(value("from", "event").help("draw latencies: start event"))
        .arg(value("to", "event").help("draw latencies: end event"))
        .arg(value("latencies", "file").help(
            "draw latencies of a text file, - for the standard input: each line has end time and latency in microseconds",
        ))
        .arg(
            value("key", "field[,field...]")
                .help("fields that are equal in a start event and its end event (default: the thread)"),
        )
        .arg(
            value("max-latency", "us")
                .value_parser(number)
                .help("with latencies: upper end of the scale in microseconds; longer latencies are in the top row"),
        )
        .arg(
            value("rows", "n")
                .value_parser(number)
                .help("number of rows (default: 50)"),
        )
        .arg(
            value("columns", "n")
                .value_parser(number)
                .help("with latencies: number of columns (default: 100)"),
        )
        .arg(value("scale", "linear|log").help(
            "with latencies: scale of the rows (default: log if the longest latency is more than 100 times the median and --max-latency is not given)",
        ))
        .arg(value("edges", "us[,us...]").help(
            "with latencies: lower end of each row in microseconds, instead of --rows, --scale and --max-latency; the lowest row also has shorter latencies",
        ))
        .arg(value("format", "svg|text").help(
            "output format: svg (default), or text (needs --from): each line has end time and latency in microseconds",
        ))
        .arg(switch("idle").help("draw samples of the idle task (default: on)"))
        .arg(value("title", "text").help("title"))
        .args(filter_args::common())
        .args(symbol_args::all())
}

/// Draws the heat map, or writes latencies as text.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let options = HeatmapOptions::new(matches)?;
    // With `--latencies`, a text file is drawn instead of a recording.
    if let Some(latencies) = latency_text::read(matches)? {
        let heat = options.heat_map(&latencies, "Latencies".to_owned());
        options.write(heat, matches, context)?;
        return Ok(ExitStatus::Ok);
    }
    let pair = LatencyEvents::new(matches)?;
    let filters = RequestedFilters::new(matches)?;
    let symbols = SymbolSources::for_recording(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    // `--time` has timestamps of the recording, as the page shows them; they do not count from the first sample.
    let relative_times = false;
    let source = HeatmapInput {
        analysis: &analysis,
        resolver: &analysis.resolver(&symbols),
        filter: filters.filter(data.metadata(), relative_times)?,
        options: &options,
    };
    let heat = match &pair {
        Some(pair) if options.is_text => {
            source.write_text(pair, context)?;
            analysis.conclude()?;
            return Ok(ExitStatus::Ok);
        }
        Some(pair) => source.latency_heat_map(pair, context)?,
        // `text` returns the value of `--event`, if given.
        None => source.subsecond(text(matches, "event"), context)?,
    };
    // Not left to `conclude`: `write` prints a note, and the progress line must be gone before that.
    analysis.end_progress();
    options.write(heat, matches, context)?;
    analysis.conclude()?;
    Ok(ExitStatus::Ok)
}

/// The options for the heat map and its output.
struct HeatmapOptions {
    output: Option<PathBuf>,
    rows: u32,
    columns: u64,
    /// The upper end of the scale of latencies in nanoseconds, if given.
    max_latency: Option<u64>,
    /// Whether rows are logarithmic, if given.
    is_logarithmic: Option<bool>,
    /// The lower end of each row in nanoseconds, if given; replaces `rows`, `is_logarithmic` and `max_latency`.
    edges: Option<Vec<u64>>,
    /// `--format text`: whether latencies are written as text instead of being drawn.
    is_text: bool,
    /// Whether samples of the idle task are drawn.
    idle: bool,
}

impl HeatmapOptions {
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let count = |id: &str, default: u64| match matches.get_one::<u64>(id).copied() {
            None => Ok(default),
            Some(count) if (1..=MAX_SIDE).contains(&count) => Ok(count),
            Some(_) => Err(CliError::usage(format!("--{id}: give 1 to {MAX_SIDE}"))),
        };
        let max_latency = matches.get_one::<u64>("max-latency");
        let latency_ids = ["scale", "edges", "max-latency", "columns"];
        // `Some(true)`: the second of the two words, `text`.
        let is_text = choice(matches, "format", ["svg", "text"])? == Some(true);
        let has_latencies = ["from", "latencies"]
            .iter()
            .any(|id| text(matches, id).is_some());
        if !has_latencies && let Some(id) = latency_ids.iter().find(|id| is_given(matches, id)) {
            return Err(CliError::usage(format!(
                "--{id} is for latencies: --from EVENT --to EVENT, or --latencies FILE"
            )));
        }
        if text(matches, "from").is_none() && is_text {
            return Err(CliError::usage(
                "--format text is for latencies of a recording: --from EVENT --to EVENT",
            ));
        }
        Ok(Self {
            // True for the second of the two words, `log`.
            is_logarithmic: choice(matches, "scale", ["linear", "log"])?,
            edges: text(matches, "edges").map(edges).transpose()?,
            is_text,
            idle: flag(matches, "idle") != Some(false),
            output: text(matches, "output").map(PathBuf::from),
            rows: u32::try_from(count("rows", ROWS)?).unwrap_or(u32::MAX),
            columns: count("columns", COLUMNS)?,
            max_latency: max_latency.map(|microseconds| microseconds.saturating_mul(1000)),
        })
    }

    /// Writes the heat map.
    fn write(
        &self,
        mut heat: HeatMap,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<(), CliError> {
        if let Some(title) = text(matches, "title") {
            title.clone_into(&mut heat.title);
        }
        let path = self.output.as_deref().unwrap_or(Path::new(DEFAULT_OUTPUT));
        write_to(path, context, |out| heat.write(out))?;
        if path != Path::new("-") {
            context.note(format_args!(
                "[ {}: {}; open it in a web browser ]",
                path.display(),
                amount(heat.total(), &heat.unit)
            ));
        }
        Ok(())
    }
}

/// A recording, with the filter of its samples and the options for the heat map.
struct HeatmapInput<'q, 'a> {
    analysis: &'q Analysis<'a>,
    resolver: &'q Resolver<'q>,
    filter: SampleCriteria,
    options: &'q HeatmapOptions,
}

impl HeatmapInput<'_, '_> {
    fn filtered(&self) -> FilteredSamples<'_> {
        FilteredSamples {
            filter: &self.filter,
            resolver: self.resolver,
        }
    }

    fn no_samples_left(&self) -> CliError {
        let message = format!("{}: no samples to draw", self.analysis.input.path.display());
        CliError::message(255, message).hint("check the filters (--time, --cpu, --comms, ...)")
    }
}

/// Returns whether the option's value is the second of the two words; `None` if the option is not given.
fn choice(matches: &ArgMatches, id: &str, words: [&str; 2]) -> Result<Option<bool>, CliError> {
    let Some(word) = text(matches, id) else {
        return Ok(None);
    };
    let index = words.iter().position(|known| *known == word);
    index.map(|index| Some(index == 1)).ok_or_else(|| {
        CliError::usage(format!(
            "--{id} takes {} or {}, not '{word}'",
            words[0], words[1]
        ))
    })
}

/// Parses the value of `--edges`, a list of microseconds, and returns nanoseconds.
fn edges(list: &str) -> Result<Vec<u64>, CliError> {
    let edge = |word: &str| {
        let microseconds = word.trim().parse::<u64>().ok();
        let nanoseconds = microseconds.and_then(|number| number.checked_mul(1000));
        nanoseconds.ok_or_else(|| {
            CliError::usage(format!(
                "--edges takes microseconds separated by commas, not '{word}'"
            ))
        })
    };
    let edges: Vec<u64> = list.split(',').map(edge).collect::<Result<_, _>>()?;
    match edges.len() as u64 <= MAX_SIDE {
        true => Ok(edges),
        false => Err(CliError::usage(format!(
            "--edges takes at most {MAX_SIDE} numbers"
        ))),
    }
}

/// Returns the value of an option, if given; not related to `--format text`.
fn text<'m>(matches: &'m ArgMatches, id: &str) -> Option<&'m str> {
    matches.get_one::<String>(id).map(String::as_str)
}
