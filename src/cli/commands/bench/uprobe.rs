//! `bench uprobe`.

use clap::{ArgMatches, Command};
use rperf_bench::uprobe::{ProbeProgram, UprobeBench, UsleepProbe};

use super::args::{BenchOptions, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple};
use super::text;
use crate::cli::error::CliError;

/// The benchmark without a probe, with which the others are compared.
const BASELINE: &str = "uprobe/baseline";

/// [`UprobeBench::probe`] of the baseline.
const NO_PROBE: Option<UsleepProbe> = None;
/// [`UsleepProbe::at_return`] of a uprobe.
const AT_ENTRY: bool = false;
/// [`UsleepProbe::at_return`] of a uretprobe.
const AT_RETURN: bool = true;

/// The benchmarks of the collection.
pub(super) const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "baseline",
        summary: "Baseline libc usleep(1000) call",
        build: command,
        run: |matches, runner| measure(NO_PROBE, matches, runner),
    },
    Benchmark {
        name: "empty",
        summary: "Attach empty BPF prog to uprobe on usleep, system wide",
        build: command,
        run: |matches, runner| measure(probe(ProbeProgram::Empty, AT_ENTRY), matches, runner),
    },
    Benchmark {
        name: "trace_printk",
        summary: "Attach trace_printk BPF prog to uprobe on usleep syswide",
        build: command,
        run: |matches, runner| measure(probe(ProbeProgram::TracePrintk, AT_ENTRY), matches, runner),
    },
    Benchmark {
        name: "empty_ret",
        summary: "Attach empty BPF prog to uretprobe on usleep, system wide",
        build: command,
        run: |matches, runner| measure(probe(ProbeProgram::Empty, AT_RETURN), matches, runner),
    },
    Benchmark {
        name: "trace_printk_ret",
        summary: "Attach trace_printk BPF prog to uretprobe on usleep syswide",
        build: command,
        run: |matches, runner| {
            measure(probe(ProbeProgram::TracePrintk, AT_RETURN), matches, runner)
        },
    },
];

fn probe(program: ProbeProgram, at_return: bool) -> Option<UsleepProbe> {
    Some(UsleepProbe { program, at_return })
}

fn command() -> Command {
    Command::new("uprobe").arg(numeric("loop", 'l', "number of calls (default: 1000)"))
}

fn measure(
    probe: Option<UsleepProbe>,
    matches: &ArgMatches,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    let bench = UprobeBench {
        loops: BenchOptions(matches).positive("loop", 1000)?,
        probe,
    };
    let loops = bench.loops;
    let earlier = Earlier {
        baseline: runner.earlier_mean(|name| name == BASELINE),
        // Excludes the baseline, so that the first benchmark after it is not compared with it twice.
        previous: runner.earlier_mean(|name| name.starts_with("uprobe/") && name != BASELINE),
    };
    runner.measure(
        || bench.run(),
        |time| {
            let micros = time.as_micros() as f64;
            let mean = text::micros_each(*time, loops);
            let of_total = earlier.differences(micros, loops as f64, |difference| format!("{difference:+.0}"));
            let one_call = 1.0;
            // As in perf, without a plus sign.
            let of_call = earlier.differences(mean, one_call, |difference| format!("{difference:.3} usecs/op"));
            RunOutput {
                text: format!(
                    "# Executed {loops} usleep(1000) calls\n {:>14}: {micros:.0} usecs{of_total}\n\n {mean:.3} usecs/op{of_call}\n",
                    "Total time"
                ),
                simple: Some(Simple {
                    value: micros,
                    decimals: 0,
                }),
                values: vec![text::time_each(*time, loops)],
            }
        },
    )
}

/// Microseconds per call in the benchmarks that `bench uprobe all` or `bench all` ran before; `None` if there is no result.
struct Earlier {
    baseline: Option<f64>,
    /// The latest benchmark other than the baseline.
    previous: Option<f64>,
}

impl Earlier {
    /// Returns the text of the differences between `micros`, the time of `calls` calls, and the time of as many calls in the
    /// earlier benchmarks.
    fn differences(
        &self,
        micros: f64,
        calls: f64,
        format_difference: impl Fn(f64) -> String,
    ) -> String {
        let earlier = [(self.baseline, "baseline"), (self.previous, "previous")];
        let known = earlier
            .into_iter()
            .filter_map(|(per_call, name)| Some((per_call?, name)));
        let texts = known.map(|(per_call, name)| {
            format!(
                " {} to {name}",
                format_difference(micros - per_call * calls)
            )
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_to_earlier_benchmarks_are_shown() {
        let mut earlier = Earlier {
            baseline: None,
            previous: None,
        };
        let format_difference = |difference: f64| format!("{difference:+.0}");
        assert_eq!(earlier.differences(500.0, 10.0, format_difference), "");
        earlier.baseline = Some(20.0);
        assert_eq!(
            earlier.differences(500.0, 10.0, format_difference),
            " +300 to baseline"
        );
        earlier.previous = Some(60.0);
        let both = " +300 to baseline -100 to previous";
        assert_eq!(earlier.differences(500.0, 10.0, format_difference), both);
    }
}
