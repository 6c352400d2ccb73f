//! `bench breakpoint`.

use clap::{ArgMatches, Command};
use rperf_bench::breakpoint::{BreakpointSwitch, BreakpointThreads};

use super::args::{BenchOptions, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple};
use super::text;
use crate::cli::error::CliError;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "thread",
        summary: "Benchmark thread start/finish with breakpoints",
        build: thread_command,
        run: thread,
    },
    Benchmark {
        name: "enable",
        summary: "Benchmark breakpoint enable/disable",
        build: enable_command,
        run: enable,
    },
];

fn thread_command() -> Command {
    Command::new("breakpoint")
        .arg(numeric(
            "breakpoints",
            'b',
            "number of breakpoints (default: 1)",
        ))
        .arg(numeric(
            "parallelism",
            'p',
            "number of parallel threads that start the measured threads (default: 1)",
        ))
        .arg(numeric(
            "threads",
            't',
            "number of threads that each parallel thread starts and joins (default: 10)",
        ))
}

fn thread(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = BreakpointThreads {
        breakpoints: options.positive_count("breakpoints", 1)?,
        parallelism: options.positive_count("parallelism", 1)?,
        threads: options.positive_count("threads", 10)?,
    };
    let thread_count = u64::from(bench.threads) * u64::from(bench.parallelism);
    runner.measure(
        || bench.run(),
        |time| {
            let each = text::micros_each(*time, thread_count);
            RunOutput {
                text: format!(
                    "# Created/joined {} threads with {} breakpoints and {} parallelism\n{}\n \
                     {each:>14.6} usecs/op\n {:>14.6} usecs/op/cpu\n",
                    bench.threads,
                    bench.breakpoints,
                    bench.parallelism,
                    text::total_time(*time),
                    each * f64::from(bench.parallelism)
                ),
                simple: Some(Simple {
                    value: time.as_secs_f64(),
                    decimals: 3,
                }),
                values: vec![text::time_each(*time, thread_count)],
            }
        },
    )
}

fn enable_command() -> Command {
    let running = "number of other threads that run during the measurement (default: 0)";
    let sleeping = "number of other threads that sleep during the measurement (default: 0)";
    Command::new("breakpoint")
        .arg(numeric("active", 'a', running))
        .arg(numeric("passive", 'p', sleeping))
}

fn enable(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = BreakpointSwitch {
        passive: options.count_or_zero("passive", 0)?,
        active: options.count_or_zero("active", 0)?,
    };
    let loops = BreakpointSwitch::LOOPS;
    runner.measure(
        || bench.run(),
        |time| {
            let each = text::micros_each(*time, loops);
            RunOutput {
                text: format!(
                    "# Enabled/disabled breakpoint {loops} time with {} passive and {} active threads\n{}\n \
                     {each:>14.6} usecs/op\n",
                    bench.passive,
                    bench.active,
                    text::total_time(*time),
                ),
                simple: Some(Simple {
                    value: time.as_secs_f64(),
                    decimals: 3,
                }),
                values: vec![text::time_each(*time, loops)],
            }
        },
    )
}
