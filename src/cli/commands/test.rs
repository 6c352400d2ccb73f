//! `rperf test`: checks what this machine allows and whether this program works on it; runs workloads with known functions.

mod cases;
mod environment;
mod junit;
mod machine;
mod round_trips;
mod runner;
mod selection;
mod symbols;
mod sysctl;
mod workload;

use std::io::Write as _;
use std::path::Path;

use clap::{Arg, ArgMatches, Command, value_parser};

use self::environment::{TestEnding, TestEnvironment};
use self::runner::{FinishedTest, RunMode};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{attached, counter, flag, is_given, switch, value};

const ABOUT: &str = "\
Checks what the kernel, the processor and the user's rights allow (Ok, or Skip with the reason), then records workloads, reads the \
recordings, and fails if a known function, thread or event is missing. Tests are selected by numbers and by parts of their names. The exit \
status is 1 if a test failed. -v shows what a bug report needs.

With -w it runs a workload: a program with known functions, threads and data, to be recorded by tests and scripts. Names and arguments are \
those of Linux perf.";

/// The file of `--junit` without a name.
const JUNIT_FILE: &str = "test.xml";

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("test")
        .long_about(ABOUT)
        .arg(
            switch("dont-fork")
                .short('F')
                .help("run tests one after another in the main thread, for debuggers: a crash ends the program"),
        )
        .arg(
            attached("junit", "file")
                .short('j')
                .help("write the results to a JUnit XML file (default: test.xml)"),
        )
        .arg(
            value("runs-per-test", "n")
                .short('r')
                .value_parser(value_parser!(u32).range(1..=100_000))
                .help("run each test n times (default: 1)"),
        )
        .arg(switch("sequential").short('S').help("run tests one after another"))
        .arg(value("skip", "n,n").short('s').help("skip the tests of these numbers"))
        .arg(counter("verbose").short('v').help("print details of each test (-vv: also symbols)"))
        .arg(
            value("workload", "name")
                .short('w')
                .help("run a workload with the following words as its arguments"),
        )
        .arg(switch("list-workloads").help("list the workloads (-v: with their arguments)"))
        .arg(
            value("record-ctl", "fifo:path[,path]")
                .help("enable a recording at the start of the workload and disable it at the end, through the fifos of its --control"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("test or argument"))
}

/// Runs tests or a workload, or lists them.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<String> = words.cloned().collect();
    let workload = matches.get_one::<String>("workload");
    check_conflicts(matches, workload.is_some())?;
    if flag(matches, "list-workloads") == Some(true) {
        return workload::list(context.verbosity(matches), context);
    }
    if let Some(name) = workload {
        return workload::run(name, &words, matches);
    }
    let skipped = matches.get_one::<String>("skip").map(String::as_str);
    match words.split_first() {
        Some((first, rest)) if first == "list" => list(rest, skipped, context),
        _ => run_tests(&selection::select(&words, skipped)?, matches, context),
    }
}

/// Rejects options of tests for a workload, and options of workloads without `-w`.
fn check_conflicts(matches: &ArgMatches, is_workload: bool) -> Result<(), CliError> {
    let test_options = ["dont-fork", "junit", "runs-per-test", "sequential", "skip"];
    let refused: &[&str] = if is_workload {
        &test_options
    } else {
        &["record-ctl"]
    };
    match refused.iter().find(|id| is_given(matches, id)) {
        Some(id) if is_workload => {
            Err(CliError::usage(format!("--{id} and -w cannot be combined")))
        }
        Some(id) => Err(CliError::usage(format!("--{id} needs a workload: -w"))),
        None => Ok(()),
    }
}

/// Prints the numbers and names of the selected tests, except those of `--skip`.
fn list(
    words: &[String],
    skipped: Option<&str>,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let tests = selection::select(words, skipped)?.into_iter();
    let mut out = context.stdout();
    for test in tests.filter(|test| !test.is_skipped) {
        writeln!(out, "{:3}: {}", test.number, test.case.name)?;
    }
    out.flush()?;
    Ok(ExitStatus::Ok)
}

fn run_tests(
    selected: &[selection::SelectedTest],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let runs = matches
        .get_one::<u32>("runs-per-test")
        .copied()
        .unwrap_or(1);
    let repeat = |test: &selection::SelectedTest| std::iter::repeat_n(*test, runs as usize);
    let tests: Vec<_> = selected.iter().flat_map(repeat).collect();
    let mode = match (flag(matches, "dont-fork"), flag(matches, "sequential")) {
        (Some(true), _) => RunMode::MainThread,
        (_, Some(true)) => RunMode::Sequential,
        _ => RunMode::Parallel,
    };
    let environment = TestEnvironment::new(context, context.verbosity(matches))?;
    let finished = runner::run(&tests, mode, &environment, context)?;
    if let Some(path) = matches.get_one::<String>("junit") {
        let path = if path.is_empty() { JUNIT_FILE } else { path };
        junit::write(Path::new(path), &finished)?;
        context.note(format_args!("Wrote junit XML output to {path}"));
    }
    Ok(summary(&finished, context))
}

/// Reports how many tests failed and how to report the failures; returns the exit status.
fn summary(finished: &[FinishedTest], context: &Context) -> ExitStatus {
    let is_failed = |test: &&FinishedTest| matches!(test.ending, Some(TestEnding::Failed(_)));
    let mut numbers: Vec<String> = finished
        .iter()
        .filter(is_failed)
        .map(|test| test.number.to_string())
        .collect();
    let failures = numbers.len();
    // `failures` counts each run. A test that ran several times (-r) is named once: its runs are adjacent.
    numbers.dedup();
    if numbers.is_empty() {
        return ExitStatus::Ok;
    }
    let program = context.program;
    context.note(format_args!(
        "{} of {} tests failed",
        failures,
        finished.len()
    ));
    // Tests 1 and 2 print the kernel, the processor and the settings.
    context.note(format_args!(
        "hint: report the output of '{program} test -v 1 2 {}'",
        numbers.join(" ")
    ));
    ExitStatus::Failure(1)
}
