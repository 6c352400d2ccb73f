//! `bench syscall`.

use clap::{ArgMatches, Command};
use rperf_bench::syscall::Call;

use super::args::{BenchOptions, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple};
use super::text;
use crate::cli::error::CliError;

/// The benchmarks of the collection `syscall`, as perf calls such a group.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "basic",
        summary: "Benchmark for basic getppid(2) calls",
        build: quick_command,
        run: |matches, runner| measure(Call::Getppid, QUICK_CALLS, matches, runner),
    },
    Benchmark {
        name: "getpgid",
        summary: "Benchmark for getpgid(2) calls",
        build: quick_command,
        run: |matches, runner| measure(Call::Getpgid, QUICK_CALLS, matches, runner),
    },
    Benchmark {
        name: "fork",
        summary: "Benchmark for fork(2) calls",
        build: slow_command,
        run: |matches, runner| measure(Call::Fork, SLOW_CALLS, matches, runner),
    },
    Benchmark {
        name: "execve",
        summary: "Benchmark for execve(2) calls",
        build: slow_command,
        run: |matches, runner| measure(Call::Execve, SLOW_CALLS, matches, runner),
    },
];

/// The default of `-l` for calls that create no process.
const QUICK_CALLS: u64 = 10_000_000;
/// The default of `-l` for calls that create processes.
const SLOW_CALLS: u64 = 10_000;

fn quick_command() -> Command {
    Command::new("syscall").arg(numeric("loop", 'l', "number of calls (default: 10000000)"))
}

fn slow_command() -> Command {
    Command::new("syscall").arg(numeric("loop", 'l', "number of calls (default: 10000)"))
}

fn measure(
    call: Call,
    default_calls: u64,
    matches: &ArgMatches,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    let loops = BenchOptions(matches).positive("loop", default_calls)?;
    runner.measure(
        || call.run(loops),
        |time| RunOutput {
            text: format!(
                "# Executed {loops} {}() calls\n{}\n{}",
                call.name(),
                text::total_time(*time),
                text::rates(*time, loops)
            ),
            simple: Some(Simple {
                value: time.as_secs_f64(),
                decimals: 3,
            }),
            // For the mean over several runs, JSON and the comparison with a baseline.
            values: vec![text::time_each(*time, loops)],
        },
    )
}
