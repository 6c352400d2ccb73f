//! `bench internals`: parts of rperf itself.

mod inject_build_id;
mod open_close;

use std::fmt::Write as _;
use std::hint::black_box;
use std::io;
use std::process;
use std::time::Instant;

use clap::{ArgMatches, Command};
use rperf_bench::{BenchError, Value};
use rperf_count::Spread;
use rperf_events::EventSources as _;
use rperf_session::TaskSynthesis;
use rperf_symbol::kallsyms;
use rperf_sys::{Proc, parallelism, read_pseudo_file};

use super::args::{BenchOptions, lettered_switch, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner};
use crate::cli::error::CliError;
use crate::cli::pmus::machine_pmus;

/// The benchmarks of the collection `internals`. The clap command of each is named `internals`; help and messages show the title
/// that the caller sets, such as `bench internals synthesize`.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "synthesize",
        summary: "Benchmark perf event synthesis",
        build: synthesize_command,
        run: synthesize,
    },
    Benchmark {
        name: "kallsyms-parse",
        summary: "Benchmark kallsyms parsing",
        build: kallsyms_command,
        run: kallsyms_parse,
    },
    Benchmark {
        name: "inject-build-id",
        summary: "Benchmark build-id injection",
        build: inject_build_id::command,
        run: inject_build_id::run,
    },
    Benchmark {
        name: "evlist-open-close",
        summary: "Benchmark evlist open and close",
        build: open_close::command,
        run: open_close::run,
    },
    Benchmark {
        name: "pmu-scan",
        summary: "Benchmark sysfs PMU info scanning",
        build: pmu_scan_command,
        run: pmu_scan,
    },
];

/// The kernel's symbols.
const KALLSYMS: &str = "/proc/kallsyms";

/// Calls `run` `iterations` times, and returns the distribution of the durations of the calls in microseconds.
fn times(iterations: u64, mut run: impl FnMut() -> io::Result<()>) -> io::Result<Spread> {
    let mut spread = Spread::default();
    for _ in 0..iterations {
        let start = Instant::now();
        run()?;
        spread.add(start.elapsed().as_secs_f64() * 1e6);
    }
    Ok(spread)
}

/// Returns a function that converts a system error. `action` says what failed.
fn system(action: &'static str) -> impl FnOnce(io::Error) -> BenchError {
    move |source| BenchError::System { action, source }
}

fn synthesize_command() -> Command {
    Command::new("internals")
        .arg(numeric(
            "multi-iterations",
            'I',
            "repetitions for each number of threads (default: 1000)",
        ))
        .arg(numeric(
            "single-iterations",
            'i',
            "repetitions on one thread (default: 10000)",
        ))
        .arg(numeric(
            "max-threads",
            'M',
            "maximum number of threads (default: number of CPUs)",
        ))
        .arg(numeric(
            "min-threads",
            'm',
            "minimum number of threads (default: 1)",
        ))
        .arg(lettered_switch(
            "st",
            's',
            "synthesize the records of this process on one thread (default)",
        ))
        .arg(lettered_switch(
            "mt",
            't',
            "synthesize the records of all processes on several threads",
        ))
}

fn synthesize(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let options = BenchOptions(matches);
    let multi_threaded = options.is_on("mt");
    if options.is_on("st") || !multi_threaded {
        let iterations = options.positive("single-iterations", 10_000)?;
        runner.print_unless_json(
            "Computing performance of single threaded perf event synthesis by\n\
             synthesizing events on the perf process itself:\n",
        )?;
        // Whether data mappings get records, too.
        for data in [false, true] {
            let synthesis = TaskSynthesis {
                process: Some(process::id()),
                data,
                threads: 1,
            };
            let name = if data { "data synthesis" } else { "synthesis" };
            measure_synthesis(&synthesis, iterations, name, "  ", runner)?;
        }
    }
    if multi_threaded {
        let iterations = options.positive("multi-iterations", 1000)?;
        let cpus = u32::try_from(parallelism()).unwrap_or(1);
        let fewest = options.positive_count("min-threads", 1)?;
        let most = options.positive_count("max-threads", cpus)?;
        if fewest > most {
            let message = format!("--min-threads {fewest} is greater than --max-threads {most}");
            return Err(CliError::usage(message));
        }
        // As in perf, the text says CPU 0, but the records of all processes are synthesized, on any CPU.
        runner.print_unless_json(
            "Computing performance of multi threaded perf event synthesis by\n\
             synthesizing events on CPU 0:\n",
        )?;
        for threads in fewest..=most {
            runner.print_unless_json(&format!("  Number of synthesis threads: {threads}\n"))?;
            let synthesis = TaskSynthesis {
                process: None,
                data: false,
                threads: threads as usize,
            };
            measure_synthesis(&synthesis, iterations, "synthesis", "    ", runner)?;
        }
    }
    Ok(())
}

/// Measures the synthesis of records, and prints the result: `name` says what was measured, `indent` precedes each line. With
/// `-f simple`, the text is the same (`simple: None`), as for the other benchmarks of this file.
fn measure_synthesis(
    synthesis: &TaskSynthesis,
    iterations: u64,
    name: &str,
    indent: &str,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    let proc = Proc::new("/proc");
    let variant = match synthesis.process {
        Some(_) => name.to_owned(),
        None => format!("{name} {} threads", synthesis.threads),
    };
    runner.measure(
        || {
            let mut record_counts = Spread::default();
            let taken = times(iterations, || {
                record_counts.add(synthesis.run(&proc)? as f64);
                Ok(())
            });
            Ok((
                taken.map_err(system("failed to synthesize records"))?,
                record_counts,
            ))
        },
        |(taken, record_counts)| {
            let each = taken.mean() / record_counts.mean().max(1.0);
            RunOutput {
                text: format!(
                    "{indent}Average {name} took: {:.3} usec (+- {:.3} usec)\n\
                     {indent}Average num. events: {:.3} (+- {:.3})\n\
                     {indent}Average time per event {each:.3} usec\n",
                    taken.mean(),
                    taken.standard_error(),
                    record_counts.mean(),
                    record_counts.standard_error()
                ),
                simple: None,
                values: vec![Value::lower_is_better("usec/event", each).with_variant(&*variant)],
            }
        },
    )
}

/// Returns a command whose only option is the number of iterations.
fn command_with_iterations(help: &'static str) -> Command {
    Command::new("internals").arg(numeric("iterations", 'i', help))
}

fn kallsyms_command() -> Command {
    command_with_iterations("repetitions (default: 1)")
}

fn kallsyms_parse(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let iterations = BenchOptions(matches).positive("iterations", 1)?;
    runner.measure(
        || {
            let parse = || {
                // The symbols keep the addresses of the running kernel.
                let relocation = None;
                black_box(kallsyms::parse(&read_pseudo_file(KALLSYMS)?, relocation));
                Ok(())
            };
            times(iterations, parse).map_err(system("failed to read /proc/kallsyms"))
        },
        |taken| RunOutput {
            text: format!(
                "  Average kallsyms__parse took: {:.3} ms (+- {:.3} ms)\n",
                taken.mean() / 1e3,
                taken.standard_error() / 1e3
            ),
            simple: None,
            values: vec![Value::lower_is_better("ms", taken.mean() / 1e3)],
        },
    )
}

fn pmu_scan_command() -> Command {
    command_with_iterations("repetitions (default: 100)")
}

fn pmu_scan(matches: &ArgMatches, runner: &mut Runner<'_>) -> Result<(), CliError> {
    let iterations = BenchOptions(matches).positive("iterations", 100)?;
    let pmus = machine_pmus(runner.context());
    runner.print_unless_json(&format!(
        "Computing performance of sysfs PMU event scan for {iterations} times\n"
    ))?;
    let scan = |is_wanted: &dyn Fn(&str) -> bool| {
        for (pmu, _) in pmus.sysfs.pmu_types()? {
            if is_wanted(&pmu) {
                for folder in ["format", "events"] {
                    for name in pmus.sysfs.pmu_files(&pmu, folder) {
                        black_box(pmus.sysfs.pmu_file(&pmu, folder, &name));
                    }
                }
            }
        }
        Ok(())
    };
    runner.measure(
        || {
            let failed = || system("failed to read the PMUs in sysfs");
            let known = pmus.sysfs.pmu_types().map_err(failed())?.into_iter();
            let core_pmus: Vec<String> = known
                .map(|(pmu, _)| pmu)
                .filter(|pmu| pmus.is_core(pmu))
                .collect();
            let is_core = |pmu: &str| core_pmus.iter().any(|core| core == pmu);
            let is_any = |_: &str| true;
            let core = times(iterations, || scan(&is_core)).map_err(failed())?;
            let all = times(iterations, || scan(&is_any)).map_err(failed())?;
            Ok([core, all])
        },
        |spreads| {
            let mut text = String::new();
            let mut values = Vec::new();
            for (spread, name) in spreads.iter().zip(["core PMU", "PMU"]) {
                let (mean, error) = (spread.mean(), spread.standard_error());
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "  Average {name} scanning took: {mean:.3} usec (+- {error:.3} usec)"
                );
                values.push(Value::lower_is_better("usec", mean).with_variant(name));
            }
            RunOutput {
                text,
                simple: None,
                values,
            }
        },
    )
}
