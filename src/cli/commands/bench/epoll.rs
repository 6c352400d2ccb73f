//! `bench epoll`.

use std::time::Duration;

use clap::{Arg, ArgMatches, Command};
use rperf_bench::Value;
use rperf_bench::epoll::{Control, Wait};
use rperf_sys::EpollMode;

use super::args::{BenchOptions, lettered_switch, numeric, threads_option};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner};
use super::text::{mean_rate_line, spread_of};
use crate::cli::error::CliError;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "wait",
        summary: "Benchmark epoll concurrent epoll_waits",
        build: wait_command,
        run: wait,
    },
    Benchmark {
        name: "ctl",
        summary: "Benchmark epoll concurrent epoll_ctls",
        build: control_command,
        run: control,
    },
];

/// The options of both benchmarks.
fn common() -> [Arg; 7] {
    [
        numeric(
            "nfds",
            'f',
            "number of file descriptors of each thread (default: 64)",
        ),
        numeric(
            "nested",
            'N',
            "nesting depth of the epoll sets (default: 0)",
        ),
        lettered_switch("noaffinity", 'n', "do not bind threads to CPUs"),
        lettered_switch(
            "randomize",
            'R',
            "choose file descriptors, and for ctl also operations, at random",
        ),
        numeric("runtime", 'r', "seconds to run (default: 8)"),
        threads_option(),
        lettered_switch(
            "verbose",
            'v',
            "show the nesting depth; for wait also the queue model and the writer's rounds",
        ),
    ]
}

/// The values of the options of both benchmarks.
struct Common {
    threads: u32,
    /// Descriptors of each thread.
    descriptors: u32,
    duration: Duration,
    /// Whether threads are bound to CPUs.
    bound: bool,
    /// Nesting depth of the epoll sets.
    nested: u32,
    /// Whether descriptors, and for `ctl` also operations, are chosen at random.
    random: bool,
    verbose: bool,
}

impl Common {
    fn new(options: BenchOptions<'_>) -> Result<Self, CliError> {
        Ok(Self {
            threads: options.threads()?,
            descriptors: options.positive_count("nfds", 64)?,
            duration: Duration::from_secs(options.positive_count("runtime", 8)?.into()),
            bound: !options.is_on("noaffinity"),
            // 0, the default, means no nesting.
            nested: options.count_or_zero("nested", 0)?,
            random: options.is_on("randomize"),
            verbose: options.is_on("verbose"),
        })
    }
}

fn wait_command() -> Command {
    Command::new("epoll")
        .arg(lettered_switch(
            "nonblocking",
            'B',
            "poll repeatedly instead of blocking",
        ))
        .arg(lettered_switch(
            "edge",
            'E',
            "use edge-triggered events (EPOLLET)",
        ))
        .arg(lettered_switch(
            "multiq",
            'm',
            "give each thread an epoll set of its own",
        ))
        .arg(lettered_switch(
            "oneshot",
            'S',
            "use one-shot events and re-arm them (EPOLLONESHOT)",
        ))
        .args(common())
}

fn wait(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let common = Common::new(options)?;
    let bench = Wait {
        threads: common.threads,
        descriptors: common.descriptors,
        duration: common.duration,
        bound: common.bound,
        own_sets: options.is_on("multiq"),
        nested: common.nested,
        random: common.random,
        nonblocking: options.is_on("nonblocking"),
        mode: EpollMode {
            edge: options.is_on("edge"),
            oneshot: options.is_on("oneshot"),
        },
    };
    let seconds = bench.duration.as_secs();
    if common.verbose {
        let model = if bench.own_sets { "multi" } else { "single" };
        runner.print_unless_json(&format!(
            "Using {model} queue model\nNesting level(s): {}\n",
            bench.nested
        ))?;
    }
    let semantics = match bench.mode.oneshot {
        true => " (EPOLLONESHOT semantics)",
        false => "",
    };
    runner.print_run_summary(&format!(
        "{} threads monitoring{semantics} on {} file-descriptors for {seconds} secs",
        bench.threads, bench.descriptors
    ))?;
    runner.measure(
        || bench.run(),
        |result| {
            let mut text = String::new();
            if common.verbose {
                text = format!("writer-thread: total full-loops: {}\n", result.rounds);
            }
            for (number, thread) in result.threads.iter().enumerate() {
                let addresses = address_range(thread.addresses);
                text.push_str(&format!(
                    "[thread {number:2}] {addresses} [ {:.0} ops/sec ]\n",
                    thread.rate
                ));
            }
            let spread = spread_of(result.threads.iter().map(|thread| thread.rate));
            text.push_str(&format!("\n{}", mean_rate_line(&spread, seconds)));
            RunOutput {
                text,
                // perf prints the same text with `-f simple`.
                simple: None,
                values: vec![Value::higher_is_better("ops/sec", spread.mean())],
            }
        },
    )
}

/// Returns the memory addresses of a thread's first and last descriptor, as perf shows them.
fn address_range([first, last]: [usize; 2]) -> String {
    format!("fdmap: {first:#x} ... {last:#x}")
}

fn control_command() -> Command {
    Command::new("epoll").args(common())
}

fn control(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let common = Common::new(BenchOptions(matches))?;
    let bench = Control {
        threads: common.threads,
        descriptors: common.descriptors,
        duration: common.duration,
        bound: common.bound,
        nested: common.nested,
        random: common.random,
    };
    if common.verbose {
        runner.print_unless_json(&format!("Nesting level(s): {}\n", bench.nested))?;
    }
    runner.print_run_summary(&format!(
        "{} threads doing epoll_ctl ops {} file-descriptors for {} secs",
        bench.threads,
        bench.descriptors,
        bench.duration.as_secs()
    ))?;
    runner.measure(
        || bench.run(),
        |threads| {
            let mut text = String::new();
            for (number, thread) in threads.iter().enumerate() {
                let [add, modify, remove] = thread.operations;
                text.push_str(&format!(
                    "[thread {number:2}] {} [ add: {add} ops; mod: {modify} ops; del: {remove} ops ]\n",
                    address_range(thread.addresses)
                ));
            }
            text.push('\n');
            let mut values = Vec::new();
            for (index, name) in ["ADD", "MOD", "DEL"].into_iter().enumerate() {
                let counts = threads.iter().filter_map(|thread| thread.operations.get(index));
                let spread = spread_of(counts.map(|count| *count as f64));
                text.push_str(&format!(
                    "Averaged {:.0} {name} operations (+- {:.2}%)\n",
                    spread.mean(),
                    spread.error_percent()
                ));
                values.push(Value::higher_is_better("ops", spread.mean()).with_variant(name));
            }
            RunOutput {
                text,
                // perf prints the same text with `-f simple`.
                simple: None,
                values,
            }
        },
    )
}
