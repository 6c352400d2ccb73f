//! `sched latency --live`: the waits of the running system, summed by BPF programs in the kernel.

use clap::ArgMatches;
use rperf_analysis::LogHistogram;
use rperf_analysis::sched::latency::{LatencyRow, LatencySums, LatencyTable};
use rperf_bpf::{
    Error, RunQueueLosses, RunQueueOptions, RunQueueSummary, TaskKey, TaskOffsets, TaskWaits,
};
use rperf_names::{counted, is_or_are};
use rperf_session::{Observation, SynthesizedRecords, Target};
use rperf_view::sched::latency::RecordLosses;

use super::LatencyQuery;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::kernel_offsets::member_offsets;
use crate::cli::live::record_reporter::RecordReporter;
use crate::cli::live::{explain, kernel_sums};
use crate::cli::options::{flag, is_given};

/// Id of the option `--live`.
pub(super) const LIVE: &str = "live";
/// The maximum number of tasks that have waited and not exited. Their sums take 34 MB, which the kernel allocates in advance.
const MAX_ROWS: u32 = 4096;
/// The ids of options that need a recording.
const RECORDING_OPTIONS: [&str; 4] = ["input", "dump-raw-trace", super::ANTAGONISTS, "force"];

/// Whether `--live` is given.
///
/// # Errors
///
/// `--live` is given with an option that needs a recording, or a command is given without `--live`.
pub(super) fn is_requested(matches: &ArgMatches) -> Result<bool, CliError> {
    let is_live = flag(matches, LIVE) == Some(true);
    if !is_live {
        return match matches.contains_id("workload") {
            true => Err(CliError::usage("a command is only run with --live")
                .hint("'sched record' runs a command and records it; -i names a recording")),
            false => Ok(false),
        };
    }
    match RECORDING_OPTIONS.iter().find(|id| is_given(matches, id)) {
        Some(id) => Err(CliError::usage(format!(
            "--{id} needs a recording; --live has none"
        ))),
        None => Ok(true),
    }
}

/// Sums the waits of all tasks until the workload ends, or until Ctrl-C, and prints the table.
pub(super) fn run(
    matches: &ArgMatches,
    context: &Context,
    query: &LatencyQuery,
) -> Result<ExitStatus, CliError> {
    // The BPF programs read the names of tasks, so that no records are needed.
    let no_records = SynthesizedRecords {
        tasks: false,
        mappings: false,
        cgroups: false,
    };
    // `-C` selects waits in the BPF programs; the observation always covers all CPUs.
    let all_cpus = Target::Cpus(None);
    let request = kernel_sums::request(all_cpus, no_records, matches, context)?;
    let has_workload = request.observe.workload.is_some();
    if !has_workload {
        context.note("observing the whole system until Ctrl-C");
    }
    // The only event of the request is a `bpf-output` event.
    let explained = |error| explain::explain(context, "bpf-output", error);
    let mut reporter = RecordReporter::new(context, matches);
    let mut observation = Observation::open(&request, &mut reporter).map_err(explained)?;
    let mut summary = start(query.cpu).map_err(unavailable)?;
    // There are no synthesized records to take.
    let started = observation.start(&request, &mut |_| {});
    started.map_err(explained)?;
    let status = kernel_sums::watch(&mut observation, has_workload, &mut |observation| {
        // Empties the rings; the records are not needed.
        observation.drain(&mut |_| {});
        // Moves the sums of ended tasks out of the BPF map, to make room for other tasks. `read` below returns them, too.
        summary.take_ended().map_err(unavailable)
    })?;
    let tasks = summary.read().map_err(unavailable)?;
    let rows = tasks.into_iter().map(|(key, waits)| row(key, waits));
    let table = LatencyTable::of_tasks(rows.collect(), query.merge_names, &query.keys);
    let losses = summary.losses().map_err(unavailable)?;
    // Waits that are not in the table count as lost records.
    let lost = RecordLosses {
        lost: losses.waits,
        ..RecordLosses::default()
    };
    query.print(&table, lost, matches, context)?;
    warn_of(losses, context);
    Ok(status)
}

fn start(cpu: Option<u32>) -> Result<RunQueueSummary, Error> {
    let [pid, comm] = member_offsets([("task_struct", "pid"), ("task_struct", "comm")])?;
    RunQueueSummary::start(RunQueueOptions {
        offsets: TaskOffsets { pid, comm },
        cpu,
        max_rows: MAX_ROWS,
    })
}

/// The error of a BPF program or map.
fn unavailable(error: Error) -> CliError {
    CliError::message(255, format!("sched latency --live: {error}"))
        .hint("'sched record' and 'sched latency -i' work without BPF programs")
}

fn warn_of(losses: RunQueueLosses, context: &Context) {
    let RunQueueLosses {
        tasks: failed_attempts,
        waits: missing_waits,
    } = losses;
    if failed_attempts + missing_waits > 0 {
        context.warn(format_args!(
            "too many tasks: {} {} not in the table; {} to add a task failed",
            counted(missing_waits, "wait"),
            is_or_are(missing_waits),
            counted(failed_attempts, "attempt")
        ));
    }
}

fn row(key: TaskKey, waits: TaskWaits) -> LatencyRow {
    let TaskWaits { min, max, .. } = waits;
    let delays = LogHistogram::from_counts(&waits.buckets, waits.total.into(), min, max);
    LatencyRow {
        comm: waits.comm,
        tid: key.thread.cast_signed(),
        tasks: 1,
        sums: LatencySums {
            runtime: waits.runtime,
            // Each wait ends with a switch to the task.
            switches: waits.count,
            delay: waits.total,
            max_delay: max,
            max_start: waits.max_end.saturating_sub(max),
            max_end: waits.max_end,
            delays,
            ..LatencySums::default()
        },
    }
}
