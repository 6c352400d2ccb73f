//! Builds the plan for counting from the options.

use std::collections::BTreeMap;

use clap::ArgMatches;
use rperf_count::{Aggregation, AggregationRules};
use rperf_events::EventSpec;
use rperf_session::{CountRequest, Target};
use rperf_sys::{Proc, WaitStatus};

use super::metrics::StatMetrics;
use super::tables::TableSubject;
use super::{events, grouping, in_kernel, timing};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::{PROC, explain, target, workload};
use crate::cli::options::flag;
use crate::cli::pmus::{MachinePmus, machine_pmus};

/// perf's exit status for a workload that can't be started.
const NO_WORKLOAD_STATUS: u8 = 255;

/// What is counted, and how the counts are shown.
pub(super) struct StatPlan {
    /// The request of a single run.
    pub(super) request: CountRequest,
    /// The events and their rows, in the order of the request.
    pub(super) row_events: Vec<events::RowEvent>,
    /// Metrics computed from the events.
    pub(super) metrics: StatMetrics,
    /// The rules by which readings are aggregated to rows.
    pub(super) aggregation: AggregationRules,
    /// Names of threads by tid, for aggregation by thread; otherwise empty.
    pub(super) threads: BTreeMap<u32, String>,
    /// The description of the target in the title of tables.
    pub(super) title: String,
    /// The number of runs; `None` for endless repetition.
    pub(super) runs: Option<u64>,
}

impl StatPlan {
    /// Builds the plan from the options.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let by_thread = flag(matches, "per-thread") == Some(true);
        let target = match target::target(matches, context, "counting")? {
            // A row per thread needs a counter per thread (`Everyone`: all threads); a counter of a CPU counts its threads
            // together.
            Target::Cpus(None) if by_thread => Target::Everyone,
            target => target,
        };
        let mut pmus = machine_pmus(context);
        pmus.preferred_pmu = requested_pmu(matches, &pmus)?;
        let aggregation = grouping::aggregation_rules(matches, &target, &pmus.sysfs)?;
        // With --bpf-prog this replaces the target by CPUs. `aggregation_rules` above got the target of the options, because -A
        // and --per-... need -a or -C also with --bpf-prog, as in perf.
        let target = in_kernel::target(matches, target)?;
        let (mut row_events, metrics) = events::events_to_count(matches, context, &target, &pmus)?;
        let bpf = in_kernel::set_up_counting(matches, context, &target, &mut row_events)?;
        // With -A, the topology is only needed for events with the term `percore`.
        let aggregation = grouping::with_cores(aggregation, &row_events, &pmus.sysfs);
        let found = workload::find(matches, context);
        let workload = found.map_err(|(word, cause)| workload_failed(&word, &cause))?;
        let threads = match aggregation.by {
            Aggregation::Thread => threads(&target),
            _ => BTreeMap::new(),
        };
        let runs = matches.get_one::<u64>("repeat").copied().unwrap_or(1);
        Ok(Self {
            title: title(matches, &target),
            threads,
            request: CountRequest {
                target,
                workload,
                events: row_events
                    .iter()
                    .map(|row_event| row_event.event.clone())
                    .collect(),
                // With --per-thread, the counter of a thread must not include threads that it creates.
                inherit: flag(matches, "no-inherit") != Some(true)
                    && aggregation.by != Aggregation::Thread,
                bpf,
                start: timing::start(matches)?,
                interval: timing::interval(matches)?,
                timeout: timing::timeout(matches, context)?,
                // Set by `stat record`.
                record_to: None,
                proc: PROC.into(),
                sysfs: pmus.sysfs.root().to_owned(),
            },
            row_events,
            metrics,
            aggregation,
            runs: (runs > 0).then_some(runs),
        })
    }
}

impl StatPlan {
    /// The subject of tables.
    pub(super) fn subject(&self) -> TableSubject<'_> {
        TableSubject {
            title: &self.title,
            by: self.aggregation.by,
            threads: &self.threads,
            // With -I, the final table is the summary of the intervals printed before it.
            may_be_summary: self.request.interval.is_some(),
        }
    }

    /// The events' specifications.
    pub(super) fn specs(&self) -> Vec<EventSpec> {
        let events = self.request.events.iter();
        events.map(|event| event.spec.clone()).collect()
    }
}

/// The error for a workload that can't be started.
pub(super) fn workload_failed(word: &str, cause: &std::io::Error) -> CliError {
    let reason = explain::exec_reason(cause);
    CliError::message(NO_WORKLOAD_STATUS, format!("Workload failed: {reason}"))
        .hint(format!("'{word}' was taken as the command to run"))
}

/// The PMU of `--pmu-filter`, which must exist on this machine.
fn requested_pmu(matches: &ArgMatches, pmus: &MachinePmus) -> Result<Option<String>, CliError> {
    let Some(requested) = matches.get_one::<String>("pmu-filter") else {
        return Ok(None);
    };
    let existing = pmus.sysfs.pmu_types().unwrap_or_default();
    if existing.iter().any(|(name, _)| name == requested) {
        return Ok(Some(requested.clone()));
    }
    let names: Vec<&str> = existing.iter().map(|(name, _)| name.as_str()).collect();
    let message = format!("--pmu-filter: this machine has no PMU '{requested}'");
    Err(CliError::usage(message).hint(format!("it has {}", names.join(", "))))
}

fn title(matches: &ArgMatches, target: &Target) -> String {
    let text = |id: &str| matches.get_one::<String>(id).map_or("", String::as_str);
    if let Some(ids) = matches.get_one::<String>("bpf-prog") {
        return format!("'BPF program(s) {ids}'");
    }
    match target {
        Target::Cpus(Some(_)) if flag(matches, "all-cpus") != Some(true) => {
            format!("'CPU(s) {}'", text("cpu"))
        }
        Target::Cpus(_) | Target::Everyone => "'system wide'".to_owned(),
        Target::Processes(_) => format!("process id '{}'", text("pid")),
        Target::Threads(_) => format!("thread id '{}'", text("tid")),
        Target::User(_) => format!("user id '{}'", text("uid")),
        Target::Workload => {
            let words = workload::workload_words(matches);
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            format!("'{}'", words.join(" "))
        }
    }
}

/// Returns thread names by tid: those of the listed processes or threads; for another target, those of all threads of the system.
fn threads(target: &Target) -> BTreeMap<u32, String> {
    let proc = Proc::new(PROC);
    let of_process = |pid: &u32| {
        let tids = proc.threads(*pid).unwrap_or_default();
        tids.into_iter().map(|tid| (*pid, tid)).collect::<Vec<_>>()
    };
    let all: Vec<(u32, u32)> = match target {
        Target::Processes(pids) => pids.iter().flat_map(of_process).collect(),
        Target::Threads(tids) => {
            let process = |tid: &u32| Some((proc.process_of(*tid).ok()?, *tid));
            tids.iter().filter_map(process).collect()
        }
        _ => {
            let pids = proc.processes().unwrap_or_default();
            pids.iter().flat_map(of_process).collect()
        }
    };
    let named = all.into_iter().filter_map(|(pid, tid)| {
        let status = proc.status(pid, tid).ok()?;
        Some((tid, String::from_utf8_lossy(&status.name).into_owned()))
    });
    named.collect()
}

/// Returns the exit status of `stat` for the workload's status; for a signal, 128 plus its number.
pub(super) fn exit_status(ended: WaitStatus) -> ExitStatus {
    match ended {
        WaitStatus::Exited(0) => ExitStatus::Ok,
        WaitStatus::Exited(status) => ExitStatus::Child(status),
        WaitStatus::Signaled(signal) => {
            ExitStatus::Child(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
    }
}
