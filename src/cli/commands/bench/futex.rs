//! `bench futex`.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::futex::{
    FutexScope, FutexWords, Hash, LockPi, Requeue, Wake, WakeParallel, lock_memory, set_buckets,
};
use rperf_count::Spread;

use super::args::{BenchOptions, lettered_switch, numeric, threads_option};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, failed};
use super::text::{mean_rate_line, spread_of};
use crate::cli::error::CliError;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "hash",
        summary: "Benchmark for futex hash table",
        build: hash_command,
        run: hash,
    },
    Benchmark {
        name: "wake",
        summary: "Benchmark for futex wake calls",
        build: wake_command,
        run: wake,
    },
    Benchmark {
        name: "wake-parallel",
        summary: "Benchmark for parallel futex wake calls",
        build: wake_parallel_command,
        run: wake_parallel,
    },
    Benchmark {
        name: "requeue",
        summary: "Benchmark for futex requeue calls",
        build: requeue_command,
        run: requeue,
    },
    Benchmark {
        name: "lock-pi",
        summary: "Benchmark for futex lock_pi calls",
        build: lock_pi_command,
        run: lock_pi,
    },
];

/// The default number of runs of `wake`, `wake-parallel` and `requeue`: perf repeats these benchmarks, and not the others.
const RUNS: u32 = 10;

/// The options that all futex benchmarks have.
fn common() -> [Arg; 5] {
    [
        numeric(
            "buckets",
            'b',
            "number of buckets of the process's futex hash table (needs Linux 6.16)",
        ),
        lettered_switch("mlockall", 'm', "keep all memory in RAM"),
        lettered_switch("shared", 'S', "use futexes that processes can share"),
        lettered_switch("silent", 's', "show only the summary and the means"),
        threads_option(),
    ]
}

/// The values of the options that all futex benchmarks have.
struct Common {
    threads: u32,
    scope: FutexScope,
    silent: bool,
}

impl Common {
    /// Reads the options, and applies those that concern the process.
    fn applied(options: BenchOptions<'_>) -> Result<Self, CliError> {
        let common = Self {
            threads: options.threads()?,
            scope: match options.is_on("shared") {
                true => FutexScope::Shared,
                false => FutexScope::Private,
            },
            silent: options.is_on("silent"),
        };
        if options.number("buckets").is_some() {
            // The default of 0 is never used: without the option, the kernel chooses the number.
            set_buckets(options.positive_count("buckets", 0)?).map_err(failed)?;
        }
        if options.is_on("mlockall") {
            lock_memory().map_err(failed)?;
        }
        Ok(common)
    }

    fn scope_name(&self) -> &'static str {
        match self.scope {
            FutexScope::Private => "private",
            FutexScope::Shared => "shared",
        }
    }
}

fn runtime(options: BenchOptions<'_>) -> Result<Duration, CliError> {
    Ok(Duration::from_secs(
        options.positive_count("runtime", 10)?.into(),
    ))
}

fn runtime_option() -> Arg {
    numeric("runtime", 'r', "seconds to run (default: 10)")
}

fn hash_command() -> Command {
    Command::new("futex")
        .args(common())
        .arg(numeric(
            "futexes",
            'f',
            "number of futexes of each thread (default: 1024)",
        ))
        .arg(runtime_option())
}

fn hash(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::applied(options)?;
    let bench = Hash {
        threads: common.threads,
        futexes: options.positive_count("futexes", 1024)?,
        duration: runtime(options)?,
        scope: common.scope,
    };
    let seconds = bench.duration.as_secs();
    runner.print_run_summary(&format!(
        "{} threads, each operating on {} [{}] futexes for {seconds} secs",
        bench.threads,
        bench.futexes,
        common.scope_name(),
    ))?;
    runner.measure(
        || bench.run(),
        |threads| {
            let mut text = String::new();
            for (number, thread) in threads.iter().enumerate() {
                let addresses = match bench.futexes {
                    1 => format!("futex: {:#x}", thread.first),
                    _ => format!("futexes: {:#x} ... {:#x}", thread.first, thread.last),
                };
                text.push_str(&format!(
                    "[thread {number:2}] {addresses} [ {:.0} ops/sec ]\n",
                    thread.rate
                ));
            }
            rate_output(
                &text,
                threads.iter().map(|thread| thread.rate),
                &common,
                seconds,
            )
        },
    )
}

/// Returns the output of a run: `thread_lines`, unless `-s` is given, and the mean rate of all threads.
fn rate_output(
    thread_lines: &str,
    rates: impl Iterator<Item = f64>,
    common: &Common,
    seconds: u64,
) -> RunOutput {
    let spread = spread_of(rates);
    let mean = mean_rate_line(&spread, seconds);
    RunOutput {
        text: match common.silent {
            true => mean,
            false => format!("{thread_lines}\n{mean}"),
        },
        // As in perf, `-f simple` prints the text, too.
        simple: None,
        values: vec![Value::higher_is_better("ops/sec", spread.mean())],
    }
}

fn lock_pi_command() -> Command {
    Command::new("futex")
        .args(common())
        .arg(lettered_switch(
            "multi",
            'M',
            "give each thread a futex of its own",
        ))
        .arg(runtime_option())
}

fn lock_pi(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::applied(options)?;
    let bench = LockPi {
        threads: common.threads,
        duration: runtime(options)?,
        scope: common.scope,
        own_locks: options.is_on("multi"),
    };
    let seconds = bench.duration.as_secs();
    runner.print_run_summary(&format!(
        "{} threads doing pi lock/unlock pairing for {seconds} secs",
        bench.threads,
    ))?;
    runner.measure(
        || bench.run(),
        |threads| {
            let mut text = String::new();
            for (number, thread) in threads.iter().enumerate() {
                text.push_str(&format!(
                    "[thread {number:3}] futex: {:#x} [ {:.0} ops/sec ]\n",
                    thread.address, thread.rate
                ));
            }
            rate_output(
                &text,
                threads.iter().map(|thread| thread.rate),
                &common,
                seconds,
            )
        },
    )
}

/// Returns the values of a run: only a time, given in milliseconds.
fn time_values(time_ms: f64) -> Vec<Value> {
    vec![Value::lower_is_better("ms", time_ms)]
}

/// Returns the line with the mean of times in milliseconds, after the text `what`.
fn mean_line(what: &str, spread: &Spread) -> String {
    format!(
        "{what} in {:.4} ms (+-{:.2}%)\n",
        spread.mean(),
        spread.error_percent()
    )
}

/// Returns the output of a run: its line, unless `-s` is given, and its values. `run` is the number of earlier runs, and is
/// increased by 1.
fn run_output(common: &Common, run: &mut u32, text: &str, values: Vec<Value>) -> RunOutput {
    *run += 1;
    RunOutput {
        text: match common.silent {
            true => String::new(),
            false => format!("[Run {run}]: {text}\n"),
        },
        // As in perf, `-f simple` prints the text, too.
        simple: None,
        values,
    }
}

fn wake_command() -> Command {
    Command::new("futex").args(common()).arg(numeric(
        "nwakes",
        'w',
        "number of threads woken per call (default: 1)",
    ))
}

fn wake(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::applied(options)?;
    let bench = Wake {
        threads: common.threads,
        at_once: options.positive_count("nwakes", 1)?,
        scope: common.scope,
    };
    let words = FutexWords::default();
    let [address, _requeue_target] = words.addresses();
    runner.print_run_summary(&format!(
        "blocking on {} threads (at [{}] futex {address:#x}), waking up {} at a time",
        bench.threads,
        common.scope_name(),
        bench.at_once
    ))?;
    let mut run = 0;
    // The mean and standard error of the times of all runs.
    let spread = runner.measure_repeated(
        RUNS,
        || bench.run(&words),
        |result| {
            let time_ms = result.time.as_secs_f64() * 1e3;
            let woken = format!("Wokeup {} of {} threads", result.woken, bench.threads);
            run_output(
                &common,
                &mut run,
                &format!("{woken} in {time_ms:.4} ms"),
                time_values(time_ms),
            )
        },
    )?;
    // Each run ends only when all threads are woken.
    let threads = bench.threads;
    let woken = format!("Wokeup {threads} of {threads} threads");
    runner.print_unless_json(&mean_line(&woken, &spread))
}

fn wake_parallel_command() -> Command {
    Command::new("futex").args(common()).arg(numeric(
        "nwakers",
        'w',
        "number of waking threads (default: one for each waiting thread)",
    ))
}

fn wake_parallel(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::applied(options)?;
    let threads = common.threads;
    let bench = WakeParallel {
        threads,
        wakers: options.positive_count("nwakers", threads)?.min(threads),
        scope: common.scope,
    };
    if threads % bench.wakers != 0 {
        let message = "Must be perfectly divisible";
        return Err(CliError::message(1, message).hint(format!(
            "{threads} waiting threads cannot be divided equally among {} waking threads",
            bench.wakers
        )));
    }
    let each = threads / bench.wakers;
    let words = FutexWords::default();
    let [address, _requeue_target] = words.addresses();
    runner.print_run_summary(&format!(
        "blocking on {threads} threads (at [{}] futex {address:#x}), \
         {} threads waking up {each} at a time",
        common.scope_name(),
        bench.wakers
    ))?;
    let latency = format!("Avg per-thread latency (waking {each}/{threads} threads)");
    let mut run = 0;
    let spread = runner.measure_repeated(
        RUNS,
        || bench.run(&words),
        // `thread_times` is the spread of the times of the waking threads in one run; `spread` is that of the means of all runs.
        |thread_times| {
            // `run_output` adds the newline.
            let text = mean_line(&latency, thread_times);
            run_output(
                &common,
                &mut run,
                text.trim_end(),
                time_values(thread_times.mean()),
            )
        },
    )?;
    runner.print_unless_json(&mean_line(&latency, &spread))
}

fn requeue_command() -> Command {
    Command::new("futex")
        .args(common())
        .arg(lettered_switch(
            "broadcast",
            'B',
            "requeue all threads in one call",
        ))
        .arg(lettered_switch(
            "pi",
            'p',
            "requeue to a futex with priority inheritance (PI)",
        ))
        .arg(numeric(
            "nrequeue",
            'q',
            "number of threads requeued per call (default: 1)",
        ))
}

fn requeue(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::applied(options)?;
    let threads = common.threads;
    let bench = Requeue {
        threads,
        at_once: match options.is_on("broadcast") {
            true => threads,
            false => options.positive_count("nrequeue", 1)?.min(threads),
        },
        scope: common.scope,
        pi: options.is_on("pi"),
    };
    let words = FutexWords::default();
    let [from, to] = words.addresses();
    runner.print_run_summary(&format!(
        "Requeuing {threads} threads (from [{}] {from:#x} to {}{to:#x}), {} at a time",
        common.scope_name(),
        if bench.pi { "PI " } else { "" },
        bench.at_once
    ))?;
    let mut run = 0;
    let spread = runner.measure_repeated(
        RUNS,
        || bench.run(&words),
        |result| {
            let time_ms = result.time.as_secs_f64() * 1e3;
            let text = match bench.pi {
                false => format!("Requeued {} of {threads} threads", result.moved),
                true => format!(
                    "Awoke and Requeued ({}+{}) of {threads} threads",
                    result.woken, result.moved
                ),
            };
            run_output(
                &common,
                &mut run,
                &format!("{text} in {time_ms:.4} ms"),
                time_values(time_ms),
            )
        },
    )?;
    // Each run ends only when all threads are requeued or woken.
    let requeued = format!("Requeued {threads} of {threads} threads");
    runner.print_unless_json(&mean_line(&requeued, &spread))
}
