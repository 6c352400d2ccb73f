//! Runs a benchmark as often as requested, prints its results and collects them for JSON and `--baseline`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process;

use rperf_bench::{BenchError, Entry, Report, Series, Value};
use rperf_count::Spread;
use rperf_sys::{parallelism, uname};

use super::args::{BenchSettings, ResultFormat};
use super::baseline::Baseline;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// Maximum number of runs for `--precision` without `-r`.
const MOST_RUNS: u32 = 100;
/// Minimum number of runs for `--precision`, unless `-r` is lower.
const FEWEST_RUNS: u32 = 3;
/// Number of runs of every benchmark if `--baseline` is given, but neither `-r` nor `--precision`: perf's default of `-r` for
/// those benchmarks that it runs more than once by default.
const BASELINE_RUNS: u32 = 10;

/// The result of one run: text for the terminal, and values for the means over several runs.
pub(super) struct RunOutput {
    /// The text that perf prints.
    pub(super) text: String,
    /// The number for `-f simple`, with its decimals; `None` if the text is printed in that format, too.
    pub(super) simple: Option<Simple>,
    /// The values for the means over several runs, JSON and the baseline.
    pub(super) values: Vec<Value>,
}

/// The number for `-f simple`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simple {
    pub(super) value: f64,
    pub(super) decimals: usize,
}

/// Runs benchmarks.
pub(super) struct Runner<'a> {
    settings: BenchSettings,
    context: &'a Context,
    report: Report,
    baseline: Option<Baseline>,
    /// Whether one of several benchmarks failed. Benchmarks that this machine cannot run do not count as failed.
    has_failed: bool,
}

impl<'a> Runner<'a> {
    /// Creates a runner; reads the file of `--baseline`.
    pub(super) fn new(settings: BenchSettings, context: &'a Context) -> Result<Self, CliError> {
        let machine = uname()?;
        let program = format!("{} {}", context.program, env!("CARGO_PKG_VERSION"));
        let baseline = settings.baseline.as_deref().map(Baseline::open);
        Ok(Self {
            report: Report::new(program, machine.release, machine.machine, parallelism()),
            baseline: baseline.transpose()?,
            settings,
            context,
            has_failed: false,
        })
    }

    pub(super) fn context(&self) -> &'a Context {
        self.context
    }

    /// Returns the options of the current benchmark, each with a blank before it.
    pub(super) fn options(&self) -> String {
        let entry = self.report.benchmarks.last();
        let options = entry.map_or(&[][..], |entry| &entry.options);
        options.iter().map(|option| format!(" {option}")).collect()
    }

    /// Begins a benchmark with its options in their long form.
    pub(super) fn begin(&mut self, name: &str, options: Vec<String>) {
        self.report.benchmarks.push(Entry {
            name: name.to_owned(),
            options,
            results: Vec::new(),
            error: None,
        });
    }

    /// Returns the mean of the first result of an earlier benchmark: of those whose names `accepts` selects, the one that ran
    /// last before the current benchmark.
    pub(super) fn earlier_mean(&self, accepts: impl Fn(&str) -> bool) -> Option<f64> {
        let earlier = self.report.benchmarks.iter().rev().skip(1);
        let mut entries = earlier.filter(|entry| accepts(&entry.name));
        Some(entries.next()?.results.first()?.mean)
    }

    /// Stores the first line of the error with which the current benchmark failed.
    pub(super) fn store_error(&mut self, error: &CliError) {
        let text = error.text();
        let first_line = text.lines().next().unwrap_or_default().to_owned();
        if let Some(entry) = self.report.benchmarks.last_mut() {
            entry.error = Some(first_line);
        }
    }

    /// Reports on stderr that one of several benchmarks has failed, after the text on stdout.
    pub(super) fn report_failure(&mut self, name: &str, error: &CliError) -> Result<(), CliError> {
        self.context.stdout().flush()?;
        self.has_failed |= error.exit() != ExitStatus::Failure(UNAVAILABLE);
        let text = error.text();
        let first_line = text.lines().next().unwrap_or_default();
        self.context.note(format_args!("{name}: {first_line}"));
        Ok(())
    }

    /// Prints text unless `-f simple` or JSON is requested. The output is flushed, so the text appears before the next
    /// measurement.
    pub(super) fn print_in_default_format(&self, text: &str) -> Result<(), CliError> {
        match self.settings.format {
            ResultFormat::Default => self.print_unless_json(text),
            ResultFormat::Simple | ResultFormat::Json => Ok(()),
        }
    }

    /// Prints text that perf also prints with `-f simple`; nothing for JSON.
    pub(super) fn print_unless_json(&self, text: &str) -> Result<(), CliError> {
        if self.settings.format != ResultFormat::Json {
            let mut out = self.context.stdout();
            out.write_all(text.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }

    /// Prints the line that describes what runs, with the id of this process.
    pub(super) fn print_run_summary(&self, what: &str) -> Result<(), CliError> {
        self.print_unless_json(&format!("Run summary [PID {}]: {what}.\n\n", process::id()))
    }

    /// Runs a benchmark that perf runs once if `-r` is not given, and prints the results in the requested format, with their
    /// means if there are several runs.
    pub(super) fn measure<T>(
        &mut self,
        run: impl FnMut() -> Result<T, BenchError>,
        show: impl FnMut(&T) -> RunOutput,
    ) -> Result<(), CliError> {
        let default_runs = 1;
        let (runs, series) = self.repeat(default_runs, run, show)?;
        if runs > 1 {
            self.print_in_default_format(&means(runs, &series))?;
        }
        self.store_results(runs, series);
        Ok(())
    }

    /// Runs a benchmark that perf runs `default_runs` times if `-r` is not given, and prints the results in the requested format,
    /// without means. Returns mean and standard error of the first of its values over all runs.
    pub(super) fn measure_repeated<T>(
        &mut self,
        default_runs: u32,
        run: impl FnMut() -> Result<T, BenchError>,
        show: impl FnMut(&T) -> RunOutput,
    ) -> Result<Spread, CliError> {
        let (runs, series) = self.repeat(default_runs, run, show)?;
        let spread = series.first().map(Series::spread).unwrap_or_default();
        self.store_results(runs, series);
        Ok(spread)
    }

    /// Runs a benchmark as often as [`Self::needs_run`] demands. Prints each run in the requested format. With `-f simple`, if
    /// the runs have a number for it ([`RunOutput::simple`]), prints only the mean of these numbers. Returns the number of runs,
    /// and a series (the values of all runs) for each value of a run.
    fn repeat<T>(
        &self,
        default_runs: u32,
        mut run: impl FnMut() -> Result<T, BenchError>,
        mut show: impl FnMut(&T) -> RunOutput,
    ) -> Result<(u32, Vec<Series>), CliError> {
        let mut series: Vec<Series> = Vec::new();
        let mut simple = Vec::new();
        let mut runs = 0;
        while self.needs_run(runs, default_runs, &series) {
            let result = run().map_err(failed)?;
            let output = show(&result);
            runs += 1;
            add(&mut series, &output.values);
            match (self.settings.format, output.simple) {
                (ResultFormat::Default, _) | (ResultFormat::Simple, None) => {
                    self.print_unless_json(&output.text)?
                }
                (ResultFormat::Simple, Some(number)) => simple.push(number),
                (ResultFormat::Json, _) => {}
            }
        }
        if let Some(first) = simple.first() {
            let sum: f64 = simple.iter().map(|number| number.value).sum();
            let mean = sum / simple.len() as f64;
            self.print_unless_json(&format!("{mean:.*}\n", first.decimals))?;
        }
        Ok((runs, series))
    }

    /// Stores the results of the current benchmark, and warns about those that do not reach `--precision`.
    fn store_results(&mut self, runs: u32, series: Vec<Series>) {
        if let Some(wanted) = self.settings.precision {
            for one in series.iter().filter(|one| !is_precise(one, wanted)) {
                let reached = one.margin_percent().unwrap_or(f64::INFINITY);
                let name = self.report.benchmarks.last().map(|entry| &*entry.name);
                let label = label(name.unwrap_or_default(), &one.variant);
                self.context.warn(format_args!(
                    "{label}: +-{wanted}% was not reached in {runs} runs: +-{reached:.2}%"
                ));
            }
        }
        if let Some(entry) = self.report.benchmarks.last_mut() {
            entry.results.extend(series);
        }
    }

    /// Whether another run is needed after `runs` runs. The number of runs is that of `-r`, if given, otherwise
    /// [`BASELINE_RUNS`] with `--baseline`, and `default_runs` without it. With `--precision`, the runs end when all series are
    /// precise, and `-r` is only a maximum.
    fn needs_run(&self, runs: u32, default_runs: u32, series: &[Series]) -> bool {
        let BenchSettings {
            repeat, precision, ..
        } = &self.settings;
        match (precision, repeat) {
            (Some(wanted), most) => {
                let most = most.unwrap_or(MOST_RUNS);
                let is_done = series.iter().all(|one| is_precise(one, *wanted));
                runs < FEWEST_RUNS.min(most) || (runs < most && !is_done)
            }
            (None, Some(repeat)) => runs < *repeat,
            (None, None) if self.baseline.is_some() => runs < BASELINE_RUNS,
            (None, None) => runs < default_runs,
        }
    }

    /// Prints JSON if requested, and the comparison with the baseline if there is one; returns the exit status.
    pub(super) fn finish(self) -> Result<ExitStatus, CliError> {
        if self.settings.format == ResultFormat::Json {
            let json = self.report.to_json();
            let json = json.map_err(|error| CliError::failure(1, error))?;
            writeln!(self.context.stdout(), "{json}")?;
        }
        let is_failure = match &self.baseline {
            None => false,
            Some(baseline) => {
                let (text, is_failure) = baseline.compare(&self.report);
                match self.settings.format {
                    // Stdout contains nothing but the JSON object.
                    ResultFormat::Json => text.lines().for_each(|line| self.context.note(line)),
                    ResultFormat::Default | ResultFormat::Simple => {
                        self.context.stdout().write_all(text.as_bytes())?;
                    }
                }
                is_failure
            }
        };
        Ok(match is_failure || self.has_failed {
            true => ExitStatus::Failure(1),
            false => ExitStatus::Ok,
        })
    }
}

/// Exit status of a benchmark that this machine cannot run.
const UNAVAILABLE: u8 = 2;

/// Returns the error of a benchmark.
pub(super) fn failed(error: BenchError) -> CliError {
    match error {
        BenchError::Unavailable(_) => CliError::failure(UNAVAILABLE, error),
        error => CliError::failure(1, error),
    }
}

/// Returns the error of a benchmark that this machine cannot run, for this reason.
pub(super) fn not_applicable(reason: String) -> CliError {
    failed(BenchError::Unavailable(reason))
}

/// Returns the name of a result in messages.
pub(super) fn label(benchmark: &str, variant: &str) -> String {
    match variant {
        "" => benchmark.to_owned(),
        variant => format!("{benchmark} {variant}"),
    }
}

/// Whether the confidence interval of the mean is within `wanted` percent on both sides (`--precision`).
fn is_precise(series: &Series, wanted: f64) -> bool {
    series
        .margin_percent()
        .is_some_and(|percent| percent <= wanted)
}

/// Adds the values of a run, each to the series of its variant: its name among the benchmark's values, empty if it is the only
/// one.
fn add(series: &mut Vec<Series>, values: &[Value]) {
    for value in values {
        let known = series.iter_mut().find(|one| one.variant == value.variant);
        match known {
            Some(one) => one.add(value.value),
            None => {
                let mut one = Series::empty_like(value);
                one.add(value.value);
                series.push(one);
            }
        }
    }
}

/// Returns the text with the means of several runs. Its percentages are standard errors, unlike those of `--precision`, which are
/// half the width of the confidence interval.
fn means(runs: u32, series: &[Series]) -> String {
    let mut text = format!("\n# Mean of {runs} runs:\n");
    for one in series {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            " {:>14.6} {} (+- {:.2}%){}{}",
            one.mean,
            one.unit,
            one.deviation_percent,
            if one.variant.is_empty() { "" } else { " " },
            one.variant
        );
    }
    text
}
