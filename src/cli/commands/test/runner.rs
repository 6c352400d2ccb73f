//! Runs tests and prints their results, in the order of their numbers.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::cases::TESTS;
use super::environment::{TestEnding, TestEnvironment, TestRun};
use super::selection::SelectedTest;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// How tests are distributed over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunMode {
    /// As many at a time as there are CPUs.
    Parallel,
    /// One after another (`-S`).
    Sequential,
    /// One after another in the main thread; a panic ends the program (`-F`).
    MainThread,
}

/// The result of one run of a test.
pub(super) struct FinishedTest {
    pub(super) name: &'static str,
    pub(super) number: usize,
    /// `None` for success.
    pub(super) ending: Option<TestEnding>,
    /// Lines about the run.
    pub(super) details: String,
    pub(super) time: Duration,
}

/// Runs the tests and prints their results in order, each as soon as possible.
pub(super) fn run(
    tests: &[SelectedTest],
    mode: RunMode,
    environment: &TestEnvironment,
    context: &Context,
) -> Result<Vec<FinishedTest>, CliError> {
    let mut finished = Vec::new();
    let mut report = |test: FinishedTest| {
        print(&test, environment.verbosity, context)?;
        finished.push(test);
        Ok::<(), CliError>(())
    };
    let workers = match mode {
        RunMode::MainThread => {
            for test in tests {
                report(run_one(test, environment))?;
            }
            return Ok(finished);
        }
        RunMode::Sequential => 1,
        RunMode::Parallel => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = channel();
    thread::scope(|scope| {
        for _ in 0..workers.min(tests.len()) {
            let sender = sender.clone();
            scope.spawn(|| take_tests(tests, &next, environment, sender));
        }
        drop(sender);
        // Results by index. Each is printed once all results before it are.
        let mut unprinted: Vec<Option<FinishedTest>> = tests.iter().map(|_| None).collect();
        let mut printed = 0;
        for (index, test) in receiver {
            if let Some(slot) = unprinted.get_mut(index) {
                *slot = Some(test);
            }
            while let Some(test) = unprinted.get_mut(printed).and_then(Option::take) {
                report(test)?;
                printed += 1;
            }
        }
        Ok::<(), CliError>(())
    })?;
    Ok(finished)
}

/// Runs tests that no other thread has taken, until there are none.
fn take_tests(
    tests: &[SelectedTest],
    next: &AtomicUsize,
    environment: &TestEnvironment,
    results: Sender<(usize, FinishedTest)>,
) {
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(test) = tests.get(index) else { return };
        let finished = catch_unwind(AssertUnwindSafe(|| run_one(test, environment)));
        let finished = finished.unwrap_or_else(|_| FinishedTest {
            name: test.case.name,
            number: test.number,
            ending: Some(TestEnding::Failed("the test panicked".to_owned())),
            details: String::new(),
            time: Duration::ZERO,
        });
        // The receiver is gone if a result could not be printed.
        if results.send((index, finished)).is_err() {
            return;
        }
    }
}

fn run_one(test: &SelectedTest, environment: &TestEnvironment) -> FinishedTest {
    let begin = Instant::now();
    let mut run = TestRun::new(environment);
    let ending = match test.is_skipped {
        true => Some(TestEnding::Skip("user override".to_owned())),
        false => (test.case.run)(&mut run).err(),
    };
    FinishedTest {
        name: test.case.name,
        number: test.number,
        ending,
        details: run.into_details(),
        time: begin.elapsed(),
    }
}

/// Prints a result; with `-v`, and for failures, with the details.
fn print(test: &FinishedTest, verbosity: u8, context: &Context) -> Result<(), CliError> {
    let width = TESTS
        .iter()
        .map(|case| case.name.len())
        .max()
        .unwrap_or_default();
    let title = format!("{:3}: {:width$} :", test.number, test.name);
    let is_failed = matches!(test.ending, Some(TestEnding::Failed(_)));
    let mut out = context.stdout();
    if (verbosity > 0 || is_failed) && !test.details.is_empty() {
        writeln!(out, "{title}\n--- start ---\n{}---- end ----", test.details)?;
    }
    match &test.ending {
        None => writeln!(out, "{title} Ok")?,
        Some(TestEnding::Skip(reason)) => writeln!(out, "{title} Skip ({reason})")?,
        Some(TestEnding::Failed(reason)) => writeln!(out, "{title} FAILED! ({reason})")?,
    }
    Ok(out.flush()?)
}
