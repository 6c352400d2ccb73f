//! `rperf histogram`: the distribution of an event's values.

mod args;
mod numbers;
mod recorded;

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_analysis::{ValueHistogram, power_edges};
use rperf_flame::BarChart;
use rperf_view::histogram::HistogramView;

use self::numbers::{CountedNumbers, NumberSource};
use self::recorded::Recorded;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::output_file::write_to;

pub(super) use self::args::command;

/// The default of `--power`: ranges begin at 0, 1, 4, 16, 64 and so on.
const DEFAULT_BASE: u64 = 4;
/// The maximum number of values in `--edges`.
const MAX_EDGES: usize = 1000;
/// The path that means the standard output.
const STDOUT: &str = "-";

/// Counts the values and prints the histogram.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let options = HistogramRequest::new(matches)?;
    let source = NumberSource::new(matches)?;
    // A temporary recording, if one was requested; it is removed at the end of this function.
    let recorded = Recorded::new(matches, &source, context)?;
    // If the workload failed, its exit status is returned after printing.
    let exit = recorded
        .as_ref()
        .map_or(ExitStatus::Ok, |recorded| recorded.exit);
    let temporary = recorded.as_ref().map(|recorded| recorded.path.clone());
    let empty = ValueHistogram::new(options.edges.clone());
    let CountedNumbers {
        mut histogram,
        damage,
    } = source.count(temporary, empty, matches, context)?;
    if !options.keeps_empty_ranges {
        histogram.trim();
    }
    options.write(&source, &histogram, context)?;
    // The error if not all records could be read.
    damage?;
    Ok(exit)
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HistogramFormat {
    Text,
    Json,
    Svg,
}

/// The options that select ranges and output.
struct HistogramRequest {
    /// The lowest value of each range but the first, in any order: [`ValueHistogram::new`] sorts them. They are `i128`, since
    /// values may be `i64` or `u64`.
    edges: Vec<i128>,
    /// Whether empty ranges at the upper end are also shown: if `--edges` or `--max` is given.
    keeps_empty_ranges: bool,
    format: HistogramFormat,
    output: Option<PathBuf>,
    title: Option<String>,
}

impl HistogramRequest {
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let is_set = |id| flag(matches, id) == Some(true);
        let number = |id: &str| matches.get_one::<u64>(id).copied();
        let given_edges = text(matches, "edges").map(edges).transpose()?;
        if given_edges.is_some()
            && let Some(id) = ["power", "max"].into_iter().find(|id| number(id).is_some())
        {
            return Err(CliError::usage(format!(
                "--edges and --{id} exclude each other"
            )));
        }
        let base = number("power").unwrap_or(DEFAULT_BASE);
        if base < 2 {
            return Err(CliError::usage("--power: give 2 or more"));
        }
        if is_set("json") && is_set("svg") {
            return Err(CliError::usage("--json and --svg exclude each other"));
        }
        let format = match (is_set("json"), is_set("svg")) {
            (true, _) => HistogramFormat::Json,
            (_, true) => HistogramFormat::Svg,
            _ => HistogramFormat::Text,
        };
        let title = text(matches, "title").map(str::to_owned);
        if title.is_some() && format != HistogramFormat::Svg {
            return Err(CliError::usage("--title needs --svg"));
        }
        Ok(Self {
            keeps_empty_ranges: given_edges.is_some() || number("max").is_some(),
            edges: given_edges
                .unwrap_or_else(|| power_edges(base, number("max").unwrap_or(u64::MAX))),
            format,
            output: text(matches, "output").map(PathBuf::from),
            title,
        })
    }

    fn write(
        &self,
        source: &NumberSource,
        histogram: &ValueHistogram,
        context: &Context,
    ) -> Result<(), CliError> {
        let (event, value_name, unit) = source.names();
        let view = HistogramView {
            event: &event,
            value_name,
            unit,
            histogram,
        };
        let default = match self.format {
            HistogramFormat::Svg => "histogram.svg",
            _ => STDOUT,
        };
        let path = self.output.as_deref().unwrap_or(Path::new(default));
        write_to(path, context, |out| match self.format {
            HistogramFormat::Text => view.write_text(out),
            HistogramFormat::Json => view.write_json(out),
            HistogramFormat::Svg => self.chart(&view).write(out),
        })?;
        if path != Path::new(STDOUT) {
            context.note(format_args!(
                "[ {}: {} values ]",
                path.display(),
                histogram.count()
            ));
        }
        Ok(())
    }

    fn chart(&self, view: &HistogramView<'_>) -> BarChart {
        let ranges = view.histogram.ranges();
        let bars = ranges.map(|range| (range.to_string(), range.count));
        BarChart {
            title: self.title.clone().unwrap_or_else(|| view.title()),
            subtitle: view.summary(),
            bars: bars.collect(),
        }
    }
}

/// Parses `--edges`: 1 to [`MAX_EDGES`] whole numbers that fit in an `i64`, separated by blanks or commas.
fn edges(list: &str) -> Result<Vec<i128>, CliError> {
    let words = list.split([' ', ',']).filter(|word| !word.is_empty());
    let edge = |word: &str| {
        let number = word.parse::<i64>().map(i128::from);
        number.map_err(|_| {
            CliError::usage(format!(
                "--edges takes whole numbers separated by blanks or commas, not '{word}'"
            ))
        })
    };
    let edges: Vec<i128> = words.map(edge).collect::<Result<_, _>>()?;
    match edges.len() {
        1..=MAX_EDGES => Ok(edges),
        _ => Err(CliError::usage(format!(
            "--edges takes 1 to {MAX_EDGES} numbers"
        ))),
    }
}

fn text<'m>(matches: &'m ArgMatches, id: &str) -> Option<&'m str> {
    matches.get_one::<String>(id).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_separated_by_blanks_or_commas() {
        assert_eq!(edges("10 100, 1000").ok(), Some(vec![10, 100, 1000]));
        assert_eq!(edges("-5").ok(), Some(vec![-5]));
        for list in ["", " ", "1,x", "1.5", "99999999999999999999"] {
            assert!(edges(list).is_err(), "{list}");
        }
    }
}
