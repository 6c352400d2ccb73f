//! The strings and structures that arguments point to, copied in the kernel, and the open files of processes.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::trace::{OpenFile, ProcessFiles};
use rperf_bpf::{ArgumentCapture, CaptureOptions, Error, TaskSet};
use rperf_events::EventSpec;
use rperf_session::{Observation, RecordRequest, Target};
use rperf_sys::{CgroupFolder, OpenCgroup, Proc, link_target};
use rperf_syscalls::{CapturePlan, ProcessMemory};

use super::TraceSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::kernel_offsets::task_pid_offset;
use crate::cli::options::flag;

/// A running capture.
pub(super) struct LiveCapture {
    capture: ArgumentCapture,
    /// The index of the event that receives its records.
    pub(super) event: usize,
}

/// Starts the capture and adds its event to `request`. Returns `None` if there is nothing to capture, no lines are printed or no
/// calls are traced. If the capture cannot be started, prints a note and returns `None`.
pub(super) fn start(
    request: &mut RecordRequest,
    settings: &TraceSettings,
    matches: &ArgMatches,
    context: &Context,
) -> Option<LiveCapture> {
    let follows_children = flag(matches, "no-inherit") != Some(true);
    let plans = plans(settings);
    if plans.is_empty() || !settings.options.prints_lines || !settings.traces_calls {
        return None;
    }
    let cgroups = open_cgroups(&request.observe.cgroups);
    let cgroups: Vec<BorrowedFd<'_>> = cgroups.iter().map(AsFd::as_fd).collect();
    let started = tasks(&request.observe.target, follows_children).and_then(|tasks| {
        ArgumentCapture::start(&CaptureOptions {
            tasks,
            excluded_process: Some(std::process::id()),
            excluded_threads: &settings.excluded_threads,
            cgroups: &cgroups,
            plans: &plans,
            string_size: settings.string_size,
        })
    });
    match started {
        Ok(capture) => {
            let event = request.observe.events.len();
            request.observe.events.push(EventSpec::bpf_output());
            Some(LiveCapture { capture, event })
        }
        Err(error) => {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            match reads_memory_late(request, settings) {
                true => context.note(format_args!(
                    "strings and structures are read after the calls have begun, and marked as late: {first}"
                )),
                false => context.note(format_args!(
                    "strings and structures are shown as addresses: {first}"
                )),
            }
            None
        }
    }
}

/// Whether memory is read without BPF, once calls have begun, if the capture fails. Only a command's memory can be read: its
/// processes are children of this one.
pub(super) fn reads_memory_late(request: &RecordRequest, settings: &TraceSettings) -> bool {
    request.observe.target == Target::Workload
        && settings.options.prints_lines
        && settings.traces_calls
}

/// The memory of children of this process.
#[derive(Debug)]
pub(super) struct ChildMemory;

impl ProcessMemory for ChildMemory {
    fn read(&self, thread: u32, address: u64, to: &mut [u8]) -> usize {
        rperf_sys::read_process_memory(thread, address, to).unwrap_or_default()
    }
}

/// Returns the numbers and capture plans of the recorded calls (those that are shown, and those that change descriptors) from
/// which something is to be captured.
fn plans(settings: &TraceSettings) -> Vec<(u32, CapturePlan)> {
    let calls = settings.recorded_syscalls().into_iter();
    let structures = settings.options.structures.as_deref();
    let plans = calls.map(|(number, call)| (number, call.capture_plan_with(structures)));
    plans
        .filter(|(_, plan)| *plan != CapturePlan::default())
        .collect()
}

/// Returns the set of tasks, without thread ids: these are added once the events are open.
fn tasks(target: &Target, follows_children: bool) -> Result<TaskSet, Error> {
    match target {
        Target::Workload | Target::Processes(_) | Target::Threads(_) | Target::User(_) => {
            Ok(TaskSet::Threads {
                threads: Vec::new(),
                // To include children, the BPF programs need the offset of `task_struct::pid`.
                follow: follows_children.then(task_pid_offset).transpose()?,
                // Has no effect without threads: `add_threads` sets it for each one.
                from_exec: false,
            })
        }
        _ => Ok(TaskSet::All),
    }
}

impl LiveCapture {
    /// Directs the records to the ring buffers, and adds the observed tasks.
    pub(super) fn connect(
        &self,
        observation: &Observation,
        request: &RecordRequest,
    ) -> Result<(), CliError> {
        let connected = self.try_connect(observation, request);
        connected.map_err(|error| CliError::message(255, error.to_string()))
    }

    fn try_connect(&self, observation: &Observation, request: &RecordRequest) -> Result<(), Error> {
        for (cpu, event) in observation.counters(self.event) {
            // Fails only for -1, a counter that is not limited to one CPU. The event of the records has no such counter.
            if let Ok(cpu) = u32::try_from(cpu) {
                self.capture.write_to(cpu, event)?;
            }
        }
        // The first thread of a command runs this program until its exec.
        let from_exec = request.observe.target == Target::Workload;
        let threads = observed_threads(observation, request);
        self.capture.add_threads(&threads, from_exec)
    }

    /// Returns the number of tasks whose memory was not captured.
    pub(super) fn uncaptured_tasks(&self) -> u64 {
        self.capture.lost_tasks().unwrap_or_default()
    }
}

/// Returns the first thread of a command, or the current threads of a target that is processes, threads or a user. The list is
/// empty for other targets.
pub(super) fn observed_threads(observation: &Observation, request: &RecordRequest) -> Vec<u32> {
    let proc = Proc::new(&request.roots.proc);
    match &request.observe.target {
        Target::Workload => observation.workload_pid().into_iter().collect(),
        Target::Threads(threads) => threads.clone(),
        target => {
            let processes = processes(target, &proc).into_iter();
            let threads = processes.map(|process| proc.threads(process).unwrap_or_default());
            threads.flatten().collect()
        }
    }
}

/// Returns the observed processes of a target that is processes, threads or a user. The list is empty for other targets.
fn processes(target: &Target, proc: &Proc) -> Vec<u32> {
    match target {
        Target::Processes(processes) => processes.clone(),
        Target::Threads(threads) => {
            let processes = threads.iter().filter_map(|tid| proc.process_of(*tid).ok());
            processes.collect()
        }
        Target::User(user) => {
            let mut processes = proc.processes().unwrap_or_default();
            processes.retain(|process| proc.owner(*process).is_ok_and(|owner| owner == *user));
            processes
        }
        Target::Workload | Target::Cpus(_) | Target::Everyone => Vec::new(),
    }
}

/// Opens the cgroups of `-G` in which system calls are traced; `of_events` has the cgroup of each event. The list is empty if
/// calls are traced in all cgroups. A missing cgroup is skipped here, and reported when the events are opened.
fn open_cgroups(of_events: &[Option<String>]) -> Vec<OpenCgroup> {
    // The first two events are entries and returns of calls. If one of them has no cgroup, this is `None`.
    let names: Option<BTreeSet<&str>> = of_events.iter().take(2).map(Option::as_deref).collect();
    let mounts = rperf_sys::read_pseudo_file_text("/proc/self/mounts").unwrap_or_default();
    let folder = CgroupFolder::find(&mounts);
    let opened = names
        .into_iter()
        .flatten()
        .map(|name| folder.as_ref()?.open(name).ok());
    opened.flatten().collect()
}

/// Returns the observed processes that run now, and their open files.
pub(super) fn open_files(
    observation: &Observation,
    request: &RecordRequest,
) -> Vec<(u32, ProcessFiles)> {
    let proc = Proc::new(&request.roots.proc);
    let processes = match &request.observe.target {
        Target::Workload => observation.workload_pid().into_iter().collect(),
        Target::Cpus(_) | Target::Everyone => proc.processes().unwrap_or_default(),
        target => processes(target, &proc),
    };
    let files = processes.into_iter().map(|process| {
        let folder = request.roots.proc.join(process.to_string());
        (process, files_of(&folder))
    });
    files.collect()
}

/// Reads the open files and the working directory of a process from its folder in /proc. Files and directories that this user
/// may not see are missing.
fn files_of(folder: &Path) -> ProcessFiles {
    // The names of the entries are the numbers of the descriptors.
    let numbers = rperf_sys::list_pseudo_folder(folder.join("fd")).unwrap_or_default();
    let open = numbers.into_iter().filter_map(|number| {
        let name = link_target(folder.join("fd").join(&number)).ok()?;
        let details = rperf_sys::read_pseudo_file_text(folder.join("fdinfo").join(&number));
        let file = OpenFile {
            name: name.into_os_string().into_encoded_bytes(),
            closes_on_exec: details.is_ok_and(|details| closes_on_exec(&details)),
        };
        Some((number.to_str()?.parse().ok()?, file))
    });
    let cwd = link_target(folder.join("cwd"));
    ProcessFiles {
        open: open.collect(),
        cwd: cwd
            .ok()
            .map(|cwd| cwd.into_os_string().into_encoded_bytes()),
    }
}

/// Whether the octal `flags` in the text of a file in `fdinfo` have `O_CLOEXEC`.
fn closes_on_exec(details: &str) -> bool {
    let flags = details.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & u64::from(libc::O_CLOEXEC.unsigned_abs()) != 0)
}
