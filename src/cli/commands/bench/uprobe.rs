//! `bench uprobe`.

use clap::{ArgMatches, Command};
use rperf_bench::uprobe::{ProbeProgram, UprobeBench, UsleepProbe};

use super::args::{BenchOptions, numeric};
use super::catalogue::Benchmark;
use super::runner::{RunOutput, Runner, Simple};
use super::text;
use crate::cli::error::CliError;

/// The benchmark that the others are compared with.
const BASELINE: &str = "uprobe/baseline";

/// The probe of the baseline.
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
        // The first benchmark after the baseline is compared with the baseline only.
        previous: runner.earlier_mean(|name| name.starts_with("uprobe/") && name != BASELINE),
    };
    runner.measure(
        || bench.run(),
        |time| {
            let micros = time.as_micros() as f64;
            let each = text::micros_each(*time, loops);
            let of_total = earlier.differences(micros, loops as f64, |number| format!("{number:+.0}"));
            let one_call = 1.0;
            let of_call = earlier.differences(each, one_call, |number| format!("{number:.3} usecs/op"));
            RunOutput {
                text: format!(
                    "# Executed {loops} usleep(1000) calls\n {:>14}: {micros:.0} usecs{of_total}\n\n {each:.3} usecs/op{of_call}\n",
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

/// Microseconds per call in the benchmarks that `all` ran before this one; `None` if there is no result.
struct Earlier {
    baseline: Option<f64>,
    /// The latest benchmark other than the baseline.
    previous: Option<f64>,
}

impl Earlier {
    /// Returns the text of the differences between `value`, the microseconds of `calls` calls, and those of the earlier
    /// benchmarks.
    fn differences(
        &self,
        value: f64,
        calls: f64,
        format_difference: impl Fn(f64) -> String,
    ) -> String {
        let earlier = [(self.baseline, "baseline"), (self.previous, "previous")];
        let known = earlier
            .into_iter()
            .filter_map(|(each, name)| Some((each?, name)));
        let words = known
            .map(|(each, name)| format!(" {} to {name}", format_difference(value - each * calls)));
        words.collect()
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
        let format_difference = |number: f64| format!("{number:+.0}");
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
