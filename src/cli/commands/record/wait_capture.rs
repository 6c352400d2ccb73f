//! BPF programs that capture who holds the lock that a thread begins to wait for: `lock record --user` and `--owners`.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use clap::ArgMatches;
use rperf_analysis::lock::{FUTEX_WAITS, LOCK_WAITS};
use rperf_bpf::{Error, FutexCaptureOptions, LockCaptureOptions, TaskSet, WaitCapture};
use rperf_events::{CallGraph, EventSpec};
use rperf_session::{OutputPrograms, RecordRequest, Target};
use rperf_sys::Proc;

use crate::cli::context::Context;
use crate::cli::live::kernel_offsets::{
    lock_layout, lock_owner_layout, pid_layout, task_pid_offset,
};
use crate::cli::options::flag;

/// What is captured: the owners of futexes, or of locks of the kernel.
#[derive(Debug, Clone, Copy)]
struct CaptureKind {
    /// The id of the option of `record` that requests it; `lock record` sets it for its `--user` or `--owners`.
    option: &'static str,
    /// The name of the `bpf-output` event that receives the records.
    event: &'static str,
    /// What a recording without it lacks, for notes.
    what: &'static str,
    start: fn(TaskSet) -> Result<WaitCapture, Error>,
}

const KINDS: [CaptureKind; 2] = [
    CaptureKind {
        option: "futex-owners",
        event: FUTEX_WAITS,
        what: "owners of futexes",
        start: start_futexes,
    },
    CaptureKind {
        option: "lock-owners",
        event: LOCK_WAITS,
        what: "owners and names of locks",
        start: start_locks,
    },
];

/// The running programs of a [`CaptureKind`].
#[derive(Debug)]
struct CapturePrograms {
    /// As in [`CaptureKind::event`].
    event: &'static str,
    capture: WaitCapture,
    /// The observed threads that exist before the recording starts.
    threads: Vec<u32>,
}

/// Starts the requested programs and adds their events. If that is not possible, prints a note, and the recording lacks what they
/// capture.
pub(super) fn start(matches: &ArgMatches, context: &Context, request: &mut RecordRequest) {
    let is_requested = |kind: &&CaptureKind| flag(matches, kind.option) == Some(true);
    let kinds: Vec<&CaptureKind> = KINDS.iter().filter(is_requested).collect();
    if kinds.is_empty() {
        return;
    }
    let (tasks, threads) = (tasks(request), threads(request));
    for kind in kinds {
        start_kind(kind, tasks.clone(), &threads, context, request);
    }
}

/// Starts the programs of a kind. `threads` are the observed threads that exist already.
fn start_kind(
    kind: &CaptureKind,
    tasks: TaskSet,
    threads: &[u32],
    context: &Context,
    request: &mut RecordRequest,
) {
    if kind.event == FUTEX_WAITS {
        // As with `-d`, mappings of data are recorded, too: readers need them to name the variable that contains a futex.
        request.observe.details.samples.data = true;
    }
    let what = kind.what;
    if request.observe.details.scope.per_thread {
        return context.note(format_args!("{what} are not recorded with --per-thread"));
    }
    match (kind.start)(tasks) {
        Ok(capture) => {
            let mut event = EventSpec::bpf_output();
            kind.event.clone_into(&mut event.name);
            // Even with -g, what the programs write has no callchain.
            event.settings.call_graph = Some(CallGraph::None);
            let programs = CapturePrograms {
                event: kind.event,
                capture,
                threads: threads.to_vec(),
            };
            request.observe.events.push(event);
            request.observe.programs.push(Arc::new(programs));
        }
        Err(error) => {
            let error = error.to_string();
            let first_line = error.lines().next().unwrap_or_default();
            context.note(format_args!("{what} are not recorded: {first_line}"));
        }
    }
}

/// Returns the tasks whose waits are captured. For processes, threads or a workload, the set is still empty:
/// [`CapturePrograms::connect`] adds the threads.
fn tasks(request: &RecordRequest) -> TaskSet {
    let follow = match &request.observe.target {
        // Without BTF, tasks that the observed ones create are not captured.
        Target::Workload | Target::Processes(_) => task_pid_offset().ok(),
        Target::Threads(_) => None,
        // All tasks of a user, of the machine, or on some CPUs: readers ignore waits of tasks that are not observed.
        _ => return TaskSet::All,
    };
    TaskSet::Threads {
        threads: Vec::new(),
        follow,
        from_exec: false,
    }
}

/// Returns the threads of the observed processes, or the observed threads; empty for other targets, such as a workload that
/// does not run yet.
fn threads(request: &RecordRequest) -> Vec<u32> {
    let proc = Proc::new(&request.roots.proc);
    match &request.observe.target {
        Target::Processes(processes) => {
            let threads = processes.iter().filter_map(|pid| proc.threads(*pid).ok());
            threads.flatten().collect()
        }
        Target::Threads(threads) => threads.clone(),
        _ => Vec::new(),
    }
}

fn start_futexes(tasks: TaskSet) -> Result<WaitCapture, Error> {
    WaitCapture::of_futexes(&FutexCaptureOptions {
        tasks,
        excluded_process: Some(std::process::id()),
        layout: pid_layout()?,
    })
}

fn start_locks(tasks: TaskSet) -> Result<WaitCapture, Error> {
    let options = LockCaptureOptions {
        tasks,
        excluded_process: Some(std::process::id()),
        // With PREEMPT_RT, the structures of locks have no member `owner`.
        owners: lock_owner_layout().ok(),
        names: lock_layout(),
    };
    match (&options.owners, &options.names) {
        (None, None) => Err(Error::NoBtf),
        _ => WaitCapture::of_locks(&options),
    }
}

impl OutputPrograms for CapturePrograms {
    fn event(&self) -> &str {
        self.event
    }

    fn connect(&self, counters: &[(i32, BorrowedFd<'_>)], workload: Option<u32>) -> io::Result<()> {
        let connected = (|| {
            for (cpu, counter) in counters {
                // Never -1: `start_kind` rejects --per-thread, without which each counter has a CPU.
                if let Ok(cpu) = u32::try_from(*cpu) {
                    self.capture.write_to(cpu, *counter)?;
                }
            }
            let from_exec = false;
            self.capture.add_threads(&self.threads, from_exec)?;
            // The workload's process exists, but the command starts with its exec.
            let workload: Vec<u32> = workload.into_iter().collect();
            let from_exec = true;
            self.capture.add_threads(&workload, from_exec)
        })();
        connected.map_err(|error: Error| io::Error::other(error.to_string()))
    }
}
