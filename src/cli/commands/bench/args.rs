//! The options common to all benchmarks, and how a benchmark reads its own.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use rperf_sys::parallelism;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{OptionShape, flag, number, options, spelling, switch, value};

const ABOUT: &str = "\
Measures the kernel, the machine and this program. 'bench' lists the collections of benchmarks, 'bench <collection>' its benchmarks, \
'bench <collection> <benchmark> -h' the options of a benchmark. 'bench <collection> all' and 'bench all' run several with their \
default options; a benchmark that cannot run on this machine is reported, and the others run.

-r and --precision repeat a benchmark and show the mean of each result with its standard error. --json writes all results as one \
object. --baseline compares them with such a file: a result is better or worse if the difference of the means exceeds the 95 % \
confidence interval (Student's t-test).";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("bench").long_about(ABOUT).args(common()).arg(
        Arg::new("words")
            .num_args(0..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true)
            .value_parser(clap::value_parser!(OsString))
            .value_name("benchmark"),
    )
}

/// The options common to all benchmarks.
fn common() -> [Arg; 5] {
    [
        value("format", "default|simple")
            .short('f')
            .help("default: as text; simple: one number per benchmark"),
        value("repeat", "n")
            .short('r')
            .value_parser(number)
            .help("run each benchmark n times and show means; with --precision: at most n times"),
        value("precision", "percent").help(
            "repeat until the 95 % confidence interval of each mean is within +- this percentage",
        ),
        switch("json").help("print the results as one JSON object"),
        value("baseline", "file")
            .value_parser(clap::value_parser!(PathBuf))
            .help(
            "compare with an earlier output of --json; 10 runs if neither -r nor --precision is given",
        ),
    ]
}

/// Adds the options common to all benchmarks. If a common option and an option of the benchmark use the same letter, the
/// benchmark's option keeps the letter: `-r` of `futex hash` is `--runtime`, not `--repeat`.
pub(super) fn with_common(command: Command) -> Command {
    let letters: Vec<char> = options(&command).filter_map(Arg::get_short).collect();
    let added = common().map(|arg| match arg.get_short() {
        Some(letter) if letters.contains(&letter) => arg.short(None),
        _ => arg,
    });
    command.args(added)
}

/// Returns the options of a benchmark that were given on the command line, in their long form and in the order of their
/// declaration. `command` declares the benchmark's own options, without the common ones.
pub(super) fn own_options(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let given = options(command).filter(|arg| {
        let source = matches.value_source(arg.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    });
    let words = given.flat_map(|arg| {
        let name = spelling(arg);
        let values = matches.get_raw(arg.get_id().as_str()).unwrap_or_default();
        let words = values.map(|value| match value.to_str() {
            Some("true") if OptionShape::of(arg) == OptionShape::Switch => name.to_string(),
            _ => format!("{name}={}", value.to_string_lossy()),
        });
        words.collect::<Vec<_>>()
    });
    words.collect()
}

/// How results are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultFormat {
    /// As text.
    Default,
    /// One number per benchmark.
    Simple,
    /// One JSON object at the end.
    Json,
}

/// The common options.
#[derive(Debug, Clone)]
pub(super) struct BenchSettings {
    pub(super) format: ResultFormat,
    /// `-r`.
    pub(super) repeat: Option<u32>,
    /// `--precision`, in percent.
    pub(super) precision: Option<f64>,
    /// `--baseline`.
    pub(super) baseline: Option<PathBuf>,
}

/// The common options as given before the collection, or after the name of the benchmark.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenSettings {
    format: Option<String>,
    repeat: Option<u64>,
    precision: Option<String>,
    json: Option<bool>,
    baseline: Option<PathBuf>,
}

impl GivenSettings {
    pub(super) fn new(matches: &ArgMatches) -> Self {
        Self {
            format: matches.get_one("format").cloned(),
            repeat: matches.get_one("repeat").copied(),
            precision: matches.get_one("precision").cloned(),
            json: flag(matches, "json"),
            baseline: matches.get_one("baseline").cloned(),
        }
    }

    /// Returns these options, and those of `earlier` that are not given here.
    pub(super) fn or(self, earlier: Self) -> Self {
        Self {
            format: self.format.or(earlier.format),
            repeat: self.repeat.or(earlier.repeat),
            precision: self.precision.or(earlier.precision),
            json: self.json.or(earlier.json),
            baseline: self.baseline.or(earlier.baseline),
        }
    }

    /// Checks the values and combines `--format` with `--json`.
    pub(super) fn check(self, context: &Context) -> Result<BenchSettings, CliError> {
        Ok(BenchSettings {
            format: self.checked_format(context)?,
            repeat: self.checked_repeat()?,
            precision: self.checked_precision(context)?,
            baseline: self.baseline,
        })
    }

    fn checked_format(&self, context: &Context) -> Result<ResultFormat, CliError> {
        let json = self.json == Some(true);
        match self.format.as_deref() {
            Some(_) if json => Err(CliError::usage(format!(
                "{} bench: --json and --format exclude each other",
                context.program
            ))),
            None if json => Ok(ResultFormat::Json),
            None | Some("default") => Ok(ResultFormat::Default),
            Some("simple") => Ok(ResultFormat::Simple),
            Some(other) => {
                let message = format!("Unknown format descriptor: '{other}'");
                Err(CliError::message(1, message).hint("use 'default' or 'simple'"))
            }
        }
    }

    fn checked_repeat(&self) -> Result<Option<u32>, CliError> {
        let Some(runs) = self.repeat else {
            return Ok(None);
        };
        match u32::try_from(runs) {
            Ok(runs) if runs > 0 => Ok(Some(runs)),
            _ => {
                let message = "Invalid repeat option: Must specify a positive value";
                Err(CliError::message(1, message).hint("the largest is 4294967295"))
            }
        }
    }

    fn checked_precision(&self, context: &Context) -> Result<Option<f64>, CliError> {
        let Some(word) = &self.precision else {
            return Ok(None);
        };
        let percent = word.strip_suffix('%').unwrap_or(word).parse::<f64>().ok();
        match percent.filter(|percent| percent.is_finite() && *percent > 0.0) {
            Some(percent) => Ok(Some(percent)),
            None => Err(CliError::usage(format!(
                "{} bench: --precision '{word}': expected a percentage above 0, such as 2",
                context.program
            ))),
        }
    }
}

/// Declares an option with a letter and a number as its value.
pub(super) fn numeric(long: &'static str, short: char, help: &'static str) -> Arg {
    value(long, "n")
        .short(short)
        .value_parser(number)
        .help(help)
}

/// Declares a switch with a letter.
pub(super) fn lettered_switch(long: &'static str, short: char, help: &'static str) -> Arg {
    switch(long).short(short).help(help)
}

/// Declares `-t`, the number of threads of a benchmark.
pub(super) fn threads_option() -> Arg {
    numeric(
        "threads",
        't',
        "number of threads (default: number of CPUs)",
    )
}

/// Returns the value `number` of the option `id` if it is not larger than `max`, a limit of rperf, not of perf. The
/// message has the form of perf's messages about options, which begin with a blank.
fn at_most(max: u32, id: &str, number: u64) -> Result<u32, CliError> {
    let number = u32::try_from(number).ok().filter(|number| *number <= max);
    number.ok_or_else(|| {
        CliError::usage(format!(
            " Error: option `{id}' expects a number up to {max}"
        ))
    })
}

/// The options of one benchmark.
#[derive(Clone, Copy)]
pub(super) struct BenchOptions<'m>(pub(super) &'m ArgMatches);

impl<'m> BenchOptions<'m> {
    /// Returns the number given for the option `id`.
    pub(super) fn number(self, id: &str) -> Option<u64> {
        self.0.get_one::<u64>(id).copied()
    }

    /// Returns a number that must be at least 1; `default` if not given.
    pub(super) fn positive(self, id: &str, default: u64) -> Result<u64, CliError> {
        match self.number(id) {
            Some(0) => Err(CliError::usage(format!(
                " Error: option `{id}' expects a number above 0"
            ))),
            given => Ok(given.unwrap_or(default)),
        }
    }

    /// Returns a number that must be at least 1 and at most 2^31, such as a number of tasks; `default` if not given.
    pub(super) fn positive_count(self, id: &str, default: u32) -> Result<u32, CliError> {
        at_most(1 << 31, id, self.positive(id, default.into())?)
    }

    /// Returns a number that may be 0 and must be at most 2^16, such as a number of additional tasks; `default` if not given.
    pub(super) fn count_or_zero(self, id: &str, default: u32) -> Result<u32, CliError> {
        at_most(1 << 16, id, self.number(id).unwrap_or(default.into()))
    }

    /// Returns the number of threads of [`threads_option`].
    pub(super) fn threads(self) -> Result<u32, CliError> {
        self.positive_count("threads", u32::try_from(parallelism()).unwrap_or(1))
    }

    /// Returns the text of an option.
    pub(super) fn word(self, id: &str) -> Option<&'m str> {
        self.0.get_one::<String>(id).map(String::as_str)
    }

    /// Whether a switch was given, and not in its negative form.
    pub(super) fn is_on(self, id: &str) -> bool {
        self.0.get_one::<bool>(id) == Some(&true)
    }
}
