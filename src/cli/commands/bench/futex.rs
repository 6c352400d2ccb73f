//! `bench futex`.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::futex::{
    FutexScope, FutexWords, Hash, LockPi, Requeue, Wake, WakeParallel, lock_memory, set_buckets,
};
use rperf_count::Spread;

use super::args::{BenchOptions, lettered, numeric, threads_option};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, failed};
use super::text::{averaged, per_second};
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

/// The default number of runs of the benchmarks that perf repeats.
const RUNS: u32 = 10;

/// The options that all futex benchmarks have.
fn common() -> [Arg; 5] {
    [
        numeric(
            "buckets",
            'b',
            "number of buckets of the process's futex hash table (needs Linux 6.16)",
        ),
        lettered("mlockall", 'm', "keep all memory in RAM"),
        lettered("shared", 'S', "use futexes that processes can share"),
        lettered("silent", 's', "show only the means"),
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
            set_buckets(options.quantity("buckets", 0)?).map_err(failed)?;
        }
        if options.is_on("mlockall") {
            lock_memory().map_err(failed)?;
        }
        Ok(common)
    }

    fn scope(&self) -> &'static str {
        match self.scope {
            FutexScope::Private => "private",
            FutexScope::Shared => "shared",
        }
    }
}

fn runtime(options: BenchOptions<'_>) -> Result<Duration, CliError> {
    Ok(Duration::from_secs(options.quantity("runtime", 10)?.into()))
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
        futexes: options.quantity("futexes", 1024)?,
        duration: runtime(options)?,
        scope: common.scope,
    };
    let seconds = bench.duration.as_secs();
    runner.summarize(&format!(
        "{} threads, each operating on {} [{}] futexes for {seconds} secs",
        bench.threads,
        bench.futexes,
        common.scope(),
    ))?;
    runner.measure(
        || bench.run(),
        |threads| {
            let mut text = String::new();
            for (number, thread) in threads.iter().enumerate().filter(|_| !common.silent) {
                let place = match bench.futexes {
                    1 => format!("futex: {:#x}", thread.first),
                    _ => format!("futexes: {:#x} ... {:#x}", thread.first, thread.last),
                };
                text.push_str(&format!(
                    "[thread {number:2}] {place} [ {:.0} ops/sec ]\n",
                    thread.rate
                ));
            }
            rates(
                text,
                threads.iter().map(|thread| thread.rate),
                &common,
                seconds,
            )
        },
    )
}

/// Appends the line with the mean rate of all threads to `text`, which has a line for each thread.
fn rates(
    mut text: String,
    rates: impl Iterator<Item = f64>,
    common: &Common,
    seconds: u64,
) -> RunOutput {
    let spread = per_second(rates);
    if !common.silent {
        text.push('\n');
    }
    text.push_str(&averaged(&spread, seconds));
    RunOutput {
        text,
        simple: None,
        values: vec![Value::higher_is_better("ops/sec", spread.mean())],
    }
}

fn lock_pi_command() -> Command {
    Command::new("futex")
        .args(common())
        .arg(lettered(
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
        multiple: options.is_on("multi"),
    };
    let seconds = bench.duration.as_secs();
    runner.summarize(&format!(
        "{} threads doing pi lock/unlock pairing for {seconds} secs",
        bench.threads,
    ))?;
    runner.measure(
        || bench.run(),
        |threads| {
            let mut text = String::new();
            for (number, thread) in threads.iter().enumerate().filter(|_| !common.silent) {
                text.push_str(&format!(
                    "[thread {number:3}] futex: {:#x} [ {:.0} ops/sec ]\n",
                    thread.address, thread.rate
                ));
            }
            rates(
                text,
                threads.iter().map(|thread| thread.rate),
                &common,
                seconds,
            )
        },
    )
}

/// A value in milliseconds.
fn millis(value: f64) -> Vec<Value> {
    vec![Value::lower_is_better("ms", value)]
}

/// The line with a mean in milliseconds.
fn in_millis(what: &str, spread: &Spread) -> String {
    format!(
        "{what} in {:.4} ms (+-{:.2}%)\n",
        spread.mean(),
        spread.percent()
    )
}

/// The line of a run, empty with `-s`. `run` is the number of the previous run, which is increased.
fn run_line(common: &Common, run: &mut u32, text: &str, values: Vec<Value>) -> RunOutput {
    *run += 1;
    RunOutput {
        text: match common.silent {
            true => String::new(),
            false => format!("[Run {run}]: {text}\n"),
        },
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
        at_once: options.quantity("nwakes", 1)?,
        scope: common.scope,
    };
    let words = FutexWords::default();
    let [address, _] = words.addresses();
    runner.summarize(&format!(
        "blocking on {} threads (at [{}] futex {address:#x}), waking up {} at a time",
        bench.threads,
        common.scope(),
        bench.at_once
    ))?;
    let mut run = 0;
    let series = runner.series(
        RUNS,
        || bench.run(&words),
        |result| {
            let time = result.time.as_secs_f64() * 1e3;
            let woken = format!("Wokeup {} of {} threads", result.woken, bench.threads);
            run_line(
                &common,
                &mut run,
                &format!("{woken} in {time:.4} ms"),
                millis(time),
            )
        },
    )?;
    let threads = bench.threads;
    let woken = format!("Wokeup {threads} of {threads} threads");
    runner.print_unless_json(&in_millis(&woken, &series))
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
        wakers: options.quantity("nwakers", threads)?.min(threads),
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
    let [address, _] = words.addresses();
    runner.summarize(&format!(
        "blocking on {threads} threads (at [{}] futex {address:#x}), \
         {} threads waking up {each} at a time",
        common.scope(),
        bench.wakers
    ))?;
    let latency = format!("Avg per-thread latency (waking {each}/{threads} threads)");
    let mut run = 0;
    let series = runner.series(
        RUNS,
        || bench.run(&words),
        |spread| {
            let text = in_millis(&latency, spread);
            run_line(&common, &mut run, text.trim_end(), millis(spread.mean()))
        },
    )?;
    runner.print_unless_json(&in_millis(&latency, &series))
}

fn requeue_command() -> Command {
    Command::new("futex")
        .args(common())
        .arg(lettered(
            "broadcast",
            'B',
            "requeue all threads in one call",
        ))
        .arg(lettered(
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
            false => options.quantity("nrequeue", 1)?.min(threads),
        },
        scope: common.scope,
        pi: options.is_on("pi"),
    };
    let words = FutexWords::default();
    let [from, to] = words.addresses();
    runner.summarize(&format!(
        "Requeuing {threads} threads (from [{}] {from:#x} to {}{to:#x}), {} at a time",
        common.scope(),
        if bench.pi { "PI " } else { "" },
        bench.at_once
    ))?;
    let mut run = 0;
    let series = runner.series(
        RUNS,
        || bench.run(&words),
        |result| {
            let time = result.time.as_secs_f64() * 1e3;
            let text = match bench.pi {
                false => format!("Requeued {} of {threads} threads", result.moved),
                true => format!(
                    "Awoke and Requeued ({}+{}) of {threads} threads",
                    result.woken, result.moved
                ),
            };
            run_line(
                &common,
                &mut run,
                &format!("{text} in {time:.4} ms"),
                millis(time),
            )
        },
    )?;
    let moved = format!("Requeued {threads} of {threads} threads");
    runner.print_unless_json(&in_millis(&moved, &series))
}
