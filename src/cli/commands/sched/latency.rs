//! `sched latency`: run times, and delays between wakeup and running.

mod live;

use clap::{ArgMatches, Command};
use rperf_analysis::sched::latency::{LatencyOptions, LatencySortKey, LatencyTable, SchedLatency};
use rperf_analysis::{AllSamples, ObserverPass};
use rperf_view::sched::antagonists::write_antagonists;
use rperf_view::sched::delay_histogram::write_histograms;
use rperf_view::sched::delays::{LatencyJson, write_json, write_percentiles};
use rperf_view::sched::latency::{RecordLosses, write};

use super::common;
use super::recording::{check_and_dump, conclude, losses};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;
use crate::cli::jobs::{self, jobs};
use crate::cli::live::workload;
use crate::cli::options::{flag, number, switch, value};
use crate::cli::record_dump;
use crate::cli::shared::analysis::Analysis;

const ABOUT: &str = "\
Shows for each command name the run time, the number of waits for a CPU, their average and maximum, and when the longest \
one began and ended. A wait begins when a task is woken, preempted or yields, and ends when it is switched in. With --live the \
waits of the running system are summed in the kernel, until the command ends or until Ctrl-C: no event is written or lost.";

const SORT: &str = "\
sort keys, highest first: avg, max (delay), switch, runtime, pid (default: avg,max,switch,runtime)";

const PERCENTILES: &str = "percentiles";
const HISTOGRAM: &str = "histogram";
const ANTAGONISTS: &str = "antagonists";

/// The format of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatencyFormat {
    /// The columns of Linux perf.
    Perf,
    Percentiles,
    Histogram,
    Antagonists,
    Json,
}

impl LatencyFormat {
    fn of(matches: &ArgMatches) -> Result<Self, CliError> {
        let is_set = |id| flag(matches, id) == Some(true);
        let tables = [
            (PERCENTILES, Self::Percentiles),
            (HISTOGRAM, Self::Histogram),
            (ANTAGONISTS, Self::Antagonists),
        ];
        let mut requested = tables.iter().filter(|(id, _)| is_set(id));
        // --json excludes only --percentiles, which is the first in `tables`. With --json, the others add to the JSON.
        match (requested.next(), requested.next()) {
            (Some((PERCENTILES, _)), _) if is_set("json") => Err(CliError::usage(
                "--percentiles and --json exclude each other: JSON has the percentiles",
            )),
            _ if is_set("json") => {
                record_dump::refuse_with_json(matches, "both print on the standard output")?;
                Ok(Self::Json)
            }
            (Some((one, _)), Some((other, _))) => Err(CliError::usage(format!(
                "--{one} and --{other} exclude each other; --json can have both"
            ))),
            (Some((_, table)), None) => Ok(*table),
            (None, _) => Ok(Self::Perf),
        }
    }
}

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched latency")
        .long_about(ABOUT)
        .arg(
            value("CPU", "n")
                .short('C')
                .value_parser(number)
                .help("only run times and waits on this CPU"),
        )
        .arg(
            switch("pids")
                .short('p')
                .help("one row per thread instead of per command name"),
        )
        .arg(value("sort", "key[,key...]").short('s').help(SORT))
        .arg(
            switch(PERCENTILES).help(
                "show the distribution of the waits (p50 to p99.9) instead of the longest one",
            ),
        )
        .arg(switch(HISTOGRAM).help("show a histogram of the waits, of all tasks and of each"))
        .arg(switch(ANTAGONISTS).help(
            "show which tasks ran on the CPU during the waits, for all tasks and for each",
        ))
        .arg(
            switch("json")
                .help("print run times and the distribution of the waits as JSON, in nanoseconds; --histogram adds the buckets, --antagonists the tasks that ran"),
        )
        .arg(switch(live::LIVE).help(
            "sum up the waits of all tasks of the running system, with BPF programs (as root; Linux 5.18 or later)",
        ))
        .args(common())
        .arg(jobs::option())
        .arg(workload::words())
}

/// The requested table, and how it is computed.
struct LatencyQuery {
    format: LatencyFormat,
    keys: Vec<LatencySortKey>,
    cpu: Option<u32>,
    with_antagonists: bool,
    /// Whether threads with the same command name share a row.
    merge_names: bool,
}

impl LatencyQuery {
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let cpu = matches.get_one::<u64>("CPU").copied();
        let cpu = cpu.map(u32::try_from).transpose().map_err(|_| {
            CliError::usage("-C: give the number of a CPU, as in the output of 'sched script'")
        })?;
        Ok(Self {
            format: LatencyFormat::of(matches)?,
            keys: sort_keys(matches)?,
            cpu,
            with_antagonists: flag(matches, ANTAGONISTS) == Some(true),
            merge_names: flag(matches, "pids") != Some(true),
        })
    }

    fn print(
        &self,
        table: &LatencyTable,
        losses: RecordLosses,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<(), CliError> {
        if self.format != LatencyFormat::Json {
            context.paginate("sched")?;
        }
        let mut out = context.stdout();
        match self.format {
            LatencyFormat::Perf => write(&mut out, table, losses)?,
            LatencyFormat::Percentiles => write_percentiles(&mut out, table)?,
            LatencyFormat::Histogram => write_histograms(&mut out, table)?,
            LatencyFormat::Antagonists => write_antagonists(&mut out, table)?,
            LatencyFormat::Json => {
                let json = LatencyJson {
                    lost_records: losses.lost,
                    with_buckets: flag(matches, HISTOGRAM) == Some(true),
                    with_antagonists: self.with_antagonists,
                };
                write_json(&mut out, table, json)?;
            }
        }
        Ok(())
    }
}

/// Prints the table.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let query = LatencyQuery::new(matches)?;
    if live::is_requested(matches)? {
        return live::run(matches, context, &query);
    }
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    // Checks that the recording has context switches, and prints its records if `-D` was given.
    let recording = check_and_dump(&analysis, matches)?;
    let options = LatencyOptions {
        cpu: query.cpu,
        with_distributions: query.format != LatencyFormat::Perf,
        with_antagonists: query.with_antagonists,
    };
    let mut latency = SchedLatency::new(&recording.layouts, options);
    let pass = ObserverPass::new(&recording.layouts, AllSamples).with_tasks();
    let delivered = pass.run(&analysis.replay, analysis.jobs, &mut latency)?;
    let table = latency.finish(query.merge_names, &query.keys);
    analysis.end_progress();
    // `losses` are the numbers of lost records, `table.losses` the stretches of time in which they were lost.
    query.print(&table, losses(&analysis), matches, context)?;
    conclude(&analysis, delivered, &table.losses, matches)
}

fn sort_keys(matches: &ArgMatches) -> Result<Vec<LatencySortKey>, CliError> {
    let Some(list) = matches.get_one::<String>("sort") else {
        return Ok(LatencySortKey::DEFAULT.to_vec());
    };
    let words = list.split([',', ' ']).filter(|word| !word.is_empty());
    let keys = words.map(|word| {
        LatencySortKey::named(word).ok_or_else(|| {
            CliError::usage(format!("  Error: Unknown --sort key: `{word}'"))
                .hint("the keys are runtime, switch, avg, max and pid")
        })
    });
    keys.collect()
}
