//! Who holds the futexes that threads begin to wait for, captured by BPF programs for `lock record --user`.

use std::io;
use std::os::fd::BorrowedFd;

use clap::ArgMatches;
use rperf_analysis::lock::FUTEX_WAITS;
use rperf_bpf::{Error, FutexCapture, FutexCaptureOptions, PidLayout, TaskSet};
use rperf_events::{CallGraph, EventSpec};
use rperf_session::{OutputPrograms, RecordRequest, Target};
use rperf_sys::Proc;

use crate::cli::context::Context;
use crate::cli::live::kernel_offsets::member_offsets;
use crate::cli::options::flag;

/// The running programs.
#[derive(Debug)]
struct FutexPrograms {
    capture: FutexCapture,
    /// The observed threads that run already.
    threads: Vec<u32>,
}

/// Starts the programs and adds their event, if requested. If that is not possible, a note tells why, and owners are missing.
pub(super) fn start(matches: &ArgMatches, context: &Context, request: &mut RecordRequest) {
    if flag(matches, "futex-owners") != Some(true) {
        return;
    }
    // Variables, which are names of locks, are in mappings of data.
    request.observe.details.samples.data = true;
    let started = match request.observe.details.scope.per_thread {
        true => None,
        false => Some(started(request)),
    };
    match started {
        Some(Ok(programs)) => {
            let mut event = EventSpec::bpf_output();
            FUTEX_WAITS.clone_into(&mut event.name);
            event.settings.call_graph = Some(CallGraph::None);
            request.observe.events.push(event);
            request.observe.programs = Some(std::sync::Arc::new(programs));
        }
        Some(Err(error)) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            context.note(format_args!("owners of futexes are not recorded: {first}"));
        }
        None => context.note("owners of futexes are not recorded with --per-thread"),
    }
}

fn started(request: &RecordRequest) -> Result<FutexPrograms, Error> {
    let [thread_pid, level, numbers, task_pid] = member_offsets([
        ("task_struct", "thread_pid"),
        ("pid", "level"),
        ("pid", "numbers"),
        ("task_struct", "pid"),
    ])?;
    let target = &request.observe.target;
    let tasks = match target {
        Target::Workload | Target::Processes(_) | Target::Threads(_) => TaskSet::Threads {
            threads: Vec::new(),
            follow: (!matches!(target, Target::Threads(_))).then_some(task_pid),
            from_exec: false,
        },
        // Records of other tasks do no harm.
        _ => TaskSet::All,
    };
    let proc = Proc::new(&request.roots.proc);
    let threads = match target {
        Target::Processes(processes) => {
            let threads = processes.iter().filter_map(|pid| proc.threads(*pid).ok());
            threads.flatten().collect()
        }
        Target::Threads(threads) => threads.clone(),
        _ => Vec::new(),
    };
    let capture = FutexCapture::start(&FutexCaptureOptions {
        tasks,
        excluded_process: Some(std::process::id()),
        layout: PidLayout {
            thread_pid,
            level,
            numbers,
        },
    })?;
    Ok(FutexPrograms { capture, threads })
}

impl OutputPrograms for FutexPrograms {
    fn event(&self) -> &str {
        FUTEX_WAITS
    }

    fn connect(&self, counters: &[(i32, BorrowedFd<'_>)], workload: Option<u32>) -> io::Result<()> {
        let connected = (|| {
            for (cpu, event) in counters {
                if let Ok(cpu) = u32::try_from(*cpu) {
                    self.capture.write_to(cpu, *event)?;
                }
            }
            self.capture.add_threads(&self.threads, false)?;
            let workload: Vec<u32> = workload.into_iter().collect();
            self.capture.add_threads(&workload, true)
        })();
        connected.map_err(|error: Error| io::Error::other(error.to_string()))
    }
}
