//! `-s` with BPF programs, which sum up the system calls in the kernel. Counting a call costs less than recording it.

use std::collections::{BTreeMap, BTreeSet};

use clap::ArgMatches;
use rperf_analysis::trace::{CallStatistics, CallSummary};
use rperf_bpf::{Error, SummaryOptions, SyscallSummary, TaskSet};
use rperf_names::{counted, is_or_are};
use rperf_session::{RecordRequest, Target};
use rperf_view::trace::SummaryMode;

use super::TraceSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::cgroups;
use crate::cli::live::kernel_offsets::task_pid_offset;
use crate::cli::options::flag;

/// The maximum number of pairs of thread and system call. In a summary by cgroup, a thread that changes its cgroup has pairs in
/// each cgroup. The map of all pairs takes 24 MB.
const MAX_PAIRS: u32 = 16384;

/// Starts the summary of a command, of running tasks or of the whole machine. Returns `None` with `--no-bpf-summary`, or if the
/// options need a record of each call, or something that the programs cannot do, such as filters. If the kernel cannot run the
/// programs, prints a note and returns `None`.
///
/// The caller adds the threads with [`SyscallSummary::add_threads`].
pub(super) fn start(
    request: &RecordRequest,
    settings: &TraceSettings,
    matches: &ArgMatches,
    context: &Context,
) -> Option<SyscallSummary> {
    let options = &settings.options;
    let only_sums_up = options.sums_up && !options.prints_lines;
    let is_ruled_out = matches.contains_id("filter-pids")
        || matches.contains_id("filter")
        || settings.delay.is_some()
        || flag(matches, "bpf-summary") == Some(false)
        || !request.observe.cgroups.is_empty();
    // As when recording events, tasks created by the threads of `-t` are not followed.
    let follows = flag(matches, "no-inherit") != Some(true)
        && !matches!(request.observe.target, Target::Threads(_));
    if !only_sums_up || is_ruled_out || !has_only_call_events(request) {
        return None;
    }
    let tasks = match &request.observe.target {
        Target::Cpus(None) => Ok(TaskSet::All),
        Target::Cpus(Some(_)) | Target::Everyone => return None,
        // The caller adds the threads.
        _ => follows
            .then(task_pid_offset)
            .transpose()
            .map(|follow| TaskSet::Threads {
                threads: Vec::new(),
                follow,
                // Has no effect without threads: `add_threads` sets it for each one.
                from_exec: true,
            }),
    };
    let started = tasks.and_then(|tasks| {
        SyscallSummary::start(&SummaryOptions {
            tasks,
            excluded_process: Some(std::process::id()),
            calls: options
                .selected_calls
                .as_ref()
                .map(|calls| calls.iter().copied().collect()),
            by_cgroup: settings.summary.mode == SummaryMode::Cgroup,
            max_pairs: MAX_PAIRS,
        })
    });
    match started {
        Ok(summary) => Some(summary),
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            context.note(format_args!(
                "system calls are counted with tracepoints, not in the kernel: {first}"
            ));
            None
        }
    }
}

/// The error for `--summary-mode cgroup` if the programs are not used: records of calls have no cgroup.
pub(super) fn no_cgroups() -> CliError {
    CliError::usage("--summary-mode cgroup: only programs in the kernel (BPF) count by cgroup")
        .hint("they count with -s alone: leave out -S, -C, -G, -D, -F, -i, --sched, --filter-pids, --no-bpf-summary and other events")
}

/// Whether the only events are the entries and returns of system calls: the programs count nothing else.
fn has_only_call_events(request: &RecordRequest) -> bool {
    let events = &request.observe.events;
    events.len() == 2
        && events.iter().all(|event| {
            let name = event.tracepoint.as_ref();
            name.is_some_and(|name| name.system == "raw_syscalls")
        })
}

/// The sum of the durations, in nanoseconds, of a thread's (or cgroup's) calls of one system call, and the sum of their squares.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    total: u64,
    squares: u128,
}

/// The tables of a summary by cgroup; the keys are cgroup ids.
struct CgroupTables(BTreeMap<u64, CgroupTable>);

/// The key and the heading of a cgroup's table, in place of a thread's id and name.
struct CgroupTable {
    /// The number that replaces the thread id: 0 for the first path, and so on.
    number: u32,
    path: String,
}

impl CgroupTables {
    /// Returns the tables of these cgroups in the order of their paths.
    fn new(ids: BTreeSet<u64>) -> Self {
        let paths = cgroups::paths();
        let name = |id: &u64| match paths.get(id) {
            Some(path) => path.display().to_string(),
            None => format!("(removed cgroup {id})"),
        };
        let mut named: Vec<(String, u64)> = ids.iter().map(|id| (name(id), *id)).collect();
        named.sort();
        let numbered = named.into_iter().zip(0..);
        let tables = numbered.map(|((path, id), number)| (id, CgroupTable { number, path }));
        Self(tables.collect())
    }
}

/// Reads the sums of the kernel and converts them to the summary that is otherwise computed from records. With
/// [`SummaryMode::Cgroup`], each thread of the result is a cgroup: its name is the path, its id a number from 0.
pub(super) fn read(
    summary: &SyscallSummary,
    mode: SummaryMode,
    context: &Context,
) -> Result<CallSummary, Error> {
    let calls = summary.read()?;
    // With `SummaryMode::Cgroup`, `birth_or_cgroup` is the id of the cgroup. Otherwise, the loop below ignores it and so merges
    // threads that had the same id one after the other.
    let tables = (mode == SummaryMode::Cgroup).then(|| {
        let ids = calls.keys().filter(|key| !key.is_compat);
        CgroupTables::new(ids.map(|key| key.birth_or_cgroup).collect())
    });
    let mut result = CallSummary::default();
    let mut sums: BTreeMap<(u32, u32), Sums> = BTreeMap::new();
    let mut last_calls: BTreeMap<u32, u64> = BTreeMap::new();
    let mut compat = 0;
    for (mut key, call) in calls {
        if key.is_compat {
            compat += call.count;
            continue;
        }
        let cgroup = tables
            .as_ref()
            .and_then(|tables| tables.0.get(&key.birth_or_cgroup));
        key.thread = cgroup.map_or(key.thread, |cgroup| cgroup.number);
        let thread = result.threads.entry(key.thread).or_default();
        // The name of a thread is the one that it had in its last call.
        let latest = last_calls.entry(key.thread).or_default();
        if call.last_end >= *latest {
            *latest = call.last_end;
            let comm = || String::from_utf8_lossy(&call.comm).into_owned();
            thread.comm = cgroup.map_or_else(comm, |cgroup| cgroup.path.clone());
        }
        // Each call counts as two events, entry and return.
        thread.events += 2 * call.count;
        result.events += 2 * call.count;
        let call_sums = sums.entry((key.thread, key.call)).or_default();
        call_sums.total += call.total;
        call_sums.squares = call_sums.squares.saturating_add(call.squares);
        let statistics: &mut CallStatistics = thread.calls.entry(key.call).or_default();
        statistics.min = match statistics.count {
            0 => call.min,
            _ => statistics.min.min(call.min),
        };
        statistics.max = statistics.max.max(call.max);
        statistics.count += call.count;
        statistics.errors += call.errors;
        for (error, count) in call.errnos {
            *statistics.by_error.entry(error).or_default() += count;
        }
        statistics.set_sums(call_sums.total, call_sums.squares);
    }
    warn_of_losses(compat, summary, context)?;
    Ok(result)
}

/// Reports `compat` calls of 32-bit programs, and calls, threads and errors that did not fit into the maps. A thread counts once
/// per failed attempt to add it.
fn warn_of_losses(compat: u64, summary: &SyscallSummary, context: &Context) -> Result<(), Error> {
    if compat > 0 {
        context.warn(format_args!(
            "{compat} system calls of 32-bit programs are not in the table"
        ));
    }
    let losses = summary.losses()?;
    if losses.tasks > 0 {
        context.warn(format_args!(
            "too many threads: {} to add one failed; their system calls are not in the table",
            counted(losses.tasks, "attempt")
        ));
    }
    if losses.calls > 0 {
        context.warn(format_args!(
            "too many pairs of thread and system call: {} {} not in the table",
            counted(losses.calls, "system call"),
            is_or_are(losses.calls)
        ));
    }
    if losses.errnos > 0 {
        context.warn(format_args!(
            "too many kinds of errors: {} {} not in the list of errors",
            counted(losses.errnos, "error"),
            is_or_are(losses.errnos)
        ));
    }
    Ok(())
}
