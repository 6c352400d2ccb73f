//! The settings of `diff`, from the command line and the configuration.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::ArgMatches;
use rperf_hist::{ComparisonMethod, ComparisonOptions};
use rperf_names::nearest;
use rperf_view::diff::DiffLayout;

use crate::cli::color::color_csi;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::RequestedFilters;
use crate::cli::input::DEFAULT;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::shared::columns::ColumnOptions;
use crate::cli::shared::report_options::{is_relative, separator};
use crate::cli::symbol_options::SymbolSources;

/// The default baseline.
const BASELINE: &str = "perf.data.old";

/// The names of the methods.
const METHODS: &[&str] = &["delta", "delta-abs", "ratio", "wdiff", "cycles"];

/// The settings of the command.
pub(super) struct DiffSettings {
    /// The recordings, the baseline first.
    pub(super) files: Vec<PathBuf>,
    /// `--runs`.
    pub(super) runs: Option<RunOptions>,
    pub(super) compare: ComparisonOptions,
    pub(super) columns: ColumnOptions,
    pub(super) filters: FileFilters,
    /// Whether percentages are relative to the samples that the filters select.
    pub(super) relative: bool,
    /// Whether symbols are shown with addresses, and objects with paths.
    pub(super) verbose: bool,
    pub(super) layout: DiffLayout,
    pub(super) json: bool,
    /// `--fail-above`: in percentage points for shares, in percent of the baseline for counts.
    pub(super) fail_above: Option<f64>,
    pub(super) symbols: SymbolSources,
    pub(super) jobs: NonZeroUsize,
    /// `-f`.
    pub(super) force: bool,
    /// `-D`.
    pub(super) dumps: bool,
    /// `--stream`.
    pub(super) streams: bool,
}

/// `--runs` and `--all`: the comparison of two groups of runs.
pub(super) struct RunOptions {
    /// The number of files in the baseline's group, which come first.
    pub(super) baseline_files: usize,
    /// Whether rows without a significant difference are shown.
    pub(super) shows_all: bool,
}

impl DiffSettings {
    /// Reads options and configuration.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let is_on = |id| flag(matches, id) == Some(true);
        let text = |id| matches.get_one::<String>(id).map(String::as_str);
        let quiet = is_on("quiet");
        context.output.set_quiet(quiet);
        let runs = runs(matches)?;
        let files = files(matches);
        let streams = is_on("stream");
        if streams {
            super::streams::check(matches, files.len())?;
        }
        let verbose = context.verbosity(matches) > 0 && !quiet;
        let json = is_on("json");
        if json && text("field-separator").is_some() {
            return Err(CliError::usage(
                "--json and --field-separator exclude each other",
            ));
        }
        if json && is_on("dump-raw-trace") {
            return Err(CliError::usage(
                "--json and --dump-raw-trace exclude each other",
            ));
        }
        let compare = comparison_options(matches, context, files.len())?;
        check_cycles(compare.method, matches)?;
        Ok(Self {
            runs,
            compare,
            // The setting `report.sort_order` does not apply to `diff`.
            columns: ColumnOptions::with_default_sort(matches, None),
            filters: FileFilters::new(matches, files.len())?,
            relative: is_relative(matches, context)?,
            layout: DiffLayout {
                cycles_histogram: is_on("cycles-hist"),
                formula: is_on("formula"),
                periods: is_on("period"),
                quiet,
                lists_files: verbose || files.len() > 2,
                separator: cell_separator(text("field-separator"))?,
                // `diff` has no option for colours: no value is given.
                colors: color_csi(context, "color", None)?,
                escapes: context.output.is_terminal(),
            },
            verbose,
            json,
            fail_above: fail_above(text("fail-above"))?,
            symbols: SymbolSources::new(matches, context)?,
            jobs: jobs(matches, context)?,
            force: is_on("force"),
            dumps: is_on("dump-raw-trace"),
            streams,
            files,
        })
    }
}

/// Refuses `--cycles-hist` without `-c cycles`, and `--sort` together with `-c cycles`, which compares basic blocks.
fn check_cycles(method: ComparisonMethod, matches: &ArgMatches) -> Result<(), CliError> {
    let is_cycles = method == ComparisonMethod::Cycles;
    if flag(matches, "cycles-hist") == Some(true) && !is_cycles {
        return Err(CliError::usage("--cycles-hist needs -c cycles"));
    }
    if is_cycles && matches.get_one::<String>("sort").is_some() {
        let error = CliError::usage("-c cycles and --sort exclude each other");
        return Err(error.hint("blocks are parts of functions: the keys are dso and symbol"));
    }
    Ok(())
}

/// Reads `--runs` and `--all`, and refuses options that `--runs` excludes.
fn runs(matches: &ArgMatches) -> Result<Option<RunOptions>, CliError> {
    let is_on = |id| flag(matches, id) == Some(true);
    let file_count = |id| matches.get_many::<String>(id).map_or(0, Iterator::count);
    if !is_on("runs") {
        return match is_on("all") {
            true => Err(CliError::usage("--all needs --runs")),
            false => Ok(None),
        };
    }
    if file_count("files") < 2 || file_count("new-files") < 2 {
        let error = CliError::usage("--runs: give at least two recordings of each group");
        return Err(error.hint("name them as OLD... -- NEW...: --runs old*.data -- new*.data"));
    }
    let switches = ["baseline-only", "formula", "period"];
    let order = matches.get_one::<u64>("order").map(|_| "order");
    let compute = matches.get_one::<String>("compute").map(|_| "compute");
    let excluded_switch = switches.into_iter().find(|id| is_on(*id));
    match excluded_switch.or(order).or(compute) {
        Some(option) => Err(CliError::usage(format!(
            "--runs and --{option} exclude each other: means of shares are compared"
        ))),
        None => Ok(Some(RunOptions {
            baseline_files: file_count("files"),
            shows_all: is_on("all"),
        })),
    }
}

/// The given files; `perf.data` if none is given. A single file is preceded by the default baseline.
fn files(matches: &ArgMatches) -> Vec<PathBuf> {
    let given = ["files", "new-files"].map(|id| matches.get_many::<String>(id));
    let given = given.into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = given.map(PathBuf::from).collect();
    if files.is_empty() {
        files.push(DEFAULT.into());
    }
    if files.len() == 1 {
        files.insert(0, BASELINE.into());
    }
    files
}

fn comparison_options(
    matches: &ArgMatches,
    context: &Context,
    file_count: usize,
) -> Result<ComparisonOptions, CliError> {
    let given = matches.get_one::<String>("compute").map(String::as_str);
    let word = given.or_else(|| context.config.text("diff.compute"));
    let order = matches.get_one::<u64>("order").copied();
    let configured = || context.config.text("diff.order")?.parse().ok();
    let order = order.or_else(configured).unwrap_or(1);
    let order = usize::try_from(order)
        .ok()
        .filter(|order| *order < file_count)
        .ok_or_else(|| {
            let hint = format!(
                "give 0 for the baseline, or up to {} for the other files",
                file_count - 1
            );
            CliError::message(255, "Order option out of limit.").hint(hint)
        })?;
    Ok(ComparisonOptions {
        method: word.map_or(Ok(ComparisonMethod::default()), method)?,
        order_file: order,
        baseline_only: flag(matches, "baseline-only") == Some(true),
    })
}

/// Parses the value of `--compute`.
fn method(text: &str) -> Result<ComparisonMethod, CliError> {
    let (word, option) = match text.split_once(':') {
        Some((word, option)) => (word, Some(option)),
        None => (text, None),
    };
    let method = match word {
        "delta" => ComparisonMethod::Delta,
        "delta-abs" => ComparisonMethod::AbsoluteDelta,
        "ratio" => ComparisonMethod::Ratio,
        "wdiff" => return weights(option.unwrap_or_default()),
        "cycles" => ComparisonMethod::Cycles,
        _ => {
            let message = format!(
                "Failed: '{word}' is not computation method (use 'delta','ratio' or 'wdiff')"
            );
            let error = CliError::usage(message);
            return Err(match nearest(word, METHODS.iter().copied()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            });
        }
    };
    match option {
        Some(option) => Err(CliError::usage(format!(
            "Failed: extra option specified '{option}'"
        ))),
        None => Ok(method),
    }
}

/// Parses the weights of `wdiff`: one for the baseline, one for the other files.
fn weights(text: &str) -> Result<ComparisonMethod, CliError> {
    let parsed = text.split_once(',').and_then(|(baseline, other)| {
        Some(ComparisonMethod::WeightedDifference {
            baseline: baseline.parse().ok()?,
            other: other.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| {
        CliError::usage("Failed: wrong weight data, use 'wdiff:w1,w2'").hint(
            "w1 is the weight of the baseline's periods, w2 that of the other file's: wdiff:2,1",
        )
    })
}

/// Parses `-t`. As in perf, an empty separator counts as none.
fn cell_separator(text: Option<&str>) -> Result<Option<String>, CliError> {
    match text {
        None | Some("") => Ok(None),
        Some(".") => Err(CliError::usage(
            "'.' is the only non valid --field-separator argument",
        )),
        Some(text) => Ok(Some(separator(text))),
    }
}

/// Parses `--fail-above`.
fn fail_above(text: Option<&str>) -> Result<Option<f64>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    // There is no upper limit: counts can grow by more than 100%.
    let limit = text.strip_suffix('%').unwrap_or(text).parse().ok();
    let limit = limit.filter(|limit: &f64| (0.0..f64::INFINITY).contains(limit));
    limit.map(Some).ok_or_else(|| {
        CliError::usage(format!("--fail-above: '{text}' is not a percentage"))
            .hint("give percentage points of shares, or percent of counts: 5%")
    })
}

/// The sample filters of each file.
pub(super) struct FileFilters {
    filters: RequestedFilters,
    /// The time range of each file, if each file has its own.
    times: Option<Vec<String>>,
}

impl FileFilters {
    fn new(matches: &ArgMatches, file_count: usize) -> Result<Self, CliError> {
        let filters = RequestedFilters::new(matches)?;
        let times = filters.time().filter(|times| times.contains(':'));
        let times: Option<Vec<String>> =
            times.map(|times| times.split(':').map(str::to_owned).collect());
        if let Some(times) = &times
            && times.len() != file_count
        {
            let message = format!(
                "--time: {} time ranges separated by colons for {file_count} files",
                times.len()
            );
            return Err(CliError::usage(message)
                .hint("give one for each file, or one without a colon for all"));
        }
        Ok(Self { filters, times })
    }

    /// Returns the filters that apply to the file with this index.
    pub(super) fn of_file(&self, index: usize) -> RequestedFilters {
        let file_time = self.times.as_ref().and_then(|times| times.get(index));
        self.filters
            .with_time(file_time.map(String::as_str).or(self.filters.time()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_parsed_and_the_nearest_one_is_suggested() {
        let weighted = ComparisonMethod::WeightedDifference {
            baseline: -2,
            other: 1,
        };
        for (text, expected) in [
            ("delta", ComparisonMethod::Delta),
            ("delta-abs", ComparisonMethod::AbsoluteDelta),
            ("ratio", ComparisonMethod::Ratio),
            ("wdiff:-2,1", weighted),
            ("cycles", ComparisonMethod::Cycles),
        ] {
            assert_eq!(method(text).ok(), Some(expected), "{text}");
        }
        for text in [
            "",
            "wdiff",
            "wdiff:1",
            "wdiff:1,x",
            "wdiff:1,2,3",
            "delta:1",
            "cycles:1",
            "+delta",
        ] {
            assert!(method(text).is_err(), "{text}");
        }
        let unknown = method("ratoi").expect_err("unknown").text();
        assert!(unknown.contains("did you mean 'ratio'?"), "{unknown}");
    }
}
