//! `bench sched`.

use std::time::Duration;

use clap::{ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::sched::{Messaging, PingPong, SeccompNotify};

use super::args::{BenchOptions, lettered_switch, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple};
use super::text;
use crate::cli::error::CliError;
use crate::cli::options::unsupported;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "messaging",
        summary: "Benchmark for scheduling and IPC",
        build: messaging_command,
        run: messaging,
    },
    Benchmark {
        name: "pipe",
        summary: "Benchmark for pipe() between two processes",
        build: pipe_command,
        run: pipe,
    },
    Benchmark {
        name: "seccomp-notify",
        summary: "Benchmark for seccomp user notify",
        build: seccomp_notify_command,
        run: seccomp_notify,
    },
];

fn messaging_command() -> Command {
    Command::new("messaging")
        .arg(numeric("group", 'g', "number of groups (default: 10)"))
        .arg(numeric(
            "nr_loops",
            'l',
            "messages from each sender to each receiver (default: 100)",
        ))
        .arg(lettered_switch(
            "pipe",
            'p',
            "use pipes instead of socket pairs",
        ))
        .arg(lettered_switch(
            "thread",
            't',
            "use threads instead of processes",
        ))
}

fn messaging(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = Messaging {
        groups: options.positive_count("group", 10)?,
        loops: options.positive("nr_loops", 100)?,
        threads: options.is_on("thread"),
        pipes: options.is_on("pipe"),
    };
    let kind = task_word(bench.threads);
    // `SIDE` senders, and as many receivers, are in each group.
    let heading = format!(
        "# {} sender and receiver {kind} per group\n# {} groups == {} {kind} run\n\n",
        Messaging::SIDE,
        bench.groups,
        bench.task_count()
    );
    runner.measure(
        || bench.run(),
        |time| RunOutput {
            text: format!("{heading}{}", text::total_time(*time)),
            simple: Some(seconds(*time)),
            values: vec![Value::lower_is_better("sec", time.as_secs_f64())],
        },
    )
}

fn pipe_command() -> Command {
    Command::new("pipe")
        .arg(unsupported("cgroups", "run the benchmark in a cgroup").short('G'))
        .arg(numeric(
            "loop",
            'l',
            "number of round trips (default: 1000000)",
        ))
        .arg(lettered_switch(
            "nonblocking",
            'n',
            "use nonblocking pipes and poll(2)",
        ))
        .arg(numeric(
            "write-size",
            's',
            "message size in bytes (default: 4)",
        ))
        .arg(lettered_switch(
            "threaded",
            'T',
            "use threads instead of processes",
        ))
}

fn pipe(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = PingPong {
        loops: options.positive("loop", 1_000_000)?,
        threads: options.is_on("threaded"),
        nonblocking: options.is_on("nonblocking"),
        size: options.positive_count("write-size", 4)? as usize,
    };
    let heading = format!(
        "# Executed {} pipe operations between two {}\n\n",
        bench.loops,
        task_word(bench.threads)
    );
    runner.measure(
        || bench.run(),
        |time| loop_output(&heading, *time, bench.loops),
    )
}

fn seccomp_notify_command() -> Command {
    Command::new("seccomp-notify")
        .arg(numeric(
            "loop",
            'l',
            "number of system calls (default: 1000000)",
        ))
        .arg(lettered_switch(
            "sync-mode",
            's',
            "switch to the notified process at once (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)",
        ))
}

fn seccomp_notify(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let bench = SeccompNotify {
        loops: options.positive("loop", 1_000_000)?,
        synchronous: options.is_on("sync-mode"),
    };
    let heading = format!("# Executed {} system calls\n\n", bench.loops);
    runner.measure(
        || bench.run(),
        |time| loop_output(&heading, *time, bench.loops),
    )
}

/// Returns the output of a benchmark that repeats an operation `loops` times: `heading`, the total time, a blank line, and the
/// rates.
fn loop_output(heading: &str, time: Duration, loops: u64) -> RunOutput {
    RunOutput {
        text: format!(
            "{heading}{}\n{}",
            text::total_time(time),
            text::rates(time, loops)
        ),
        simple: Some(seconds(time)),
        values: vec![text::time_each(time, loops)],
    }
}

/// Returns the time in seconds as the number for `-f simple`.
fn seconds(time: Duration) -> Simple {
    Simple {
        value: time.as_secs_f64(),
        decimals: 3,
    }
}

/// Returns the word for the tasks of a benchmark, which are either threads or processes.
fn task_word(are_threads: bool) -> &'static str {
    match are_threads {
        true => "threads",
        false => "processes",
    }
}
