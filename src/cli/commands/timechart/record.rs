//! `timechart record`: records the events that `timechart` draws.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command};
use rperf_events::Tracepoints as _;

use super::args::{ChartParts, parts};
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{flag, switch, value};
use crate::cli::shared::system_recording::known_events;
use crate::cli::tracefs::MachineTracepoints;

const ABOUT: &str = "\
Records context switches and wakeups of all tasks, and idle states and frequencies of all CPUs, while a command runs or until ^C. \
With -I it records system calls that read, write, send, receive, synchronize or poll instead.";

/// Context switches and wakeups, in perf's order.
const TASK_EVENTS: [&str; 2] = ["sched:sched_wakeup", "sched:sched_switch"];
const POWER_EVENTS: [&str; 2] = ["power:cpu_frequency", "power:cpu_idle"];

/// Groups of system calls in perf's order. In each group, the events of entries precede those of returns.
const CALLS: [&[&str]; 3] = [
    &[
        "read",
        "pread64",
        "readv",
        "preadv",
        "write",
        "pwrite64",
        "writev",
        "pwritev",
        "sync",
        "sync_file_range",
        "fsync",
        "msync",
    ],
    &[
        "recvfrom", "recvmmsg", "recvmsg", "sendto", "sendmsg", "sendmmsg",
    ],
    &[
        "epoll_pwait",
        "epoll_wait",
        "poll",
        "ppoll",
        "pselect6",
        "select",
    ],
];

/// The command in messages.
const RECORDER: &str = "timechart record";

/// The options passed to `record`: the whole system, raw data, every event.
const OPTIONS: [&str; 4] = ["-a", "-R", "-c", "1"];

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("timechart record")
        .long_about(ABOUT)
        .arg(
            switch("power-only")
                .short('P')
                .help("record only idle states and frequencies of CPUs"),
        )
        .arg(
            switch("tasks-only")
                .short('T')
                .help("record no idle states and frequencies of CPUs"),
        )
        .arg(
            switch("io-only")
                .short('I')
                .help("record system calls for input and output instead"),
        )
        .arg(
            switch("callchain")
                .short('g')
                .help("record callchains, to see why tasks sleep"),
        )
        .arg(
            value("output", "file")
                .short('o')
                .help("output file, - for the standard output (default: perf.data)"),
        )
        .arg(
            Arg::new("workload")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString)),
        )
}

/// Records.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let parts = parts(matches)?;
    let is_io = flag(matches, "io-only") == Some(true);
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let mut arguments: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    if flag(matches, "callchain") == Some(true) {
        arguments.push("-g".into());
    }
    if let Some(output) = matches.get_one::<String>("output") {
        arguments.extend(["-o".into(), output.into()]);
    }
    arguments.extend([
        "-e".into(),
        events(&machine, parts, is_io)?.join(",").into(),
    ]);
    if is_io {
        // Otherwise, each write of the recording would cause events to be recorded, without end.
        arguments.push("--exclude-perf".into());
    }
    let workload = matches.get_many::<OsString>("workload").unwrap_or_default();
    if workload.len() > 0 {
        arguments.push("--".into());
        arguments.extend(workload.cloned());
    }
    dispatch(context, OsStr::new("record"), &arguments)
}

/// Returns the events to record. Power events and system calls that the kernel lacks are left out; a missing task event is an
/// error, and so is an empty result.
fn events(
    machine: &MachineTracepoints,
    parts: ChartParts,
    is_io: bool,
) -> Result<Vec<String>, CliError> {
    if is_io {
        let events = call_events(&known_events(RECORDER, machine, "syscalls")?);
        return match events.is_empty() {
            true => Err(missing(
                machine,
                "tracepoints of system calls (CONFIG_FTRACE_SYSCALLS)",
            )),
            false => Ok(events),
        };
    }
    let mut events = Vec::new();
    if parts != ChartParts::Power {
        let known = known_events(RECORDER, machine, "sched")?;
        for event in TASK_EVENTS {
            if !has(&known, event) {
                return Err(missing(machine, &format!("tracepoint {event}")));
            }
            events.push(event.to_owned());
        }
    }
    if parts != ChartParts::Tasks {
        let known = known_events(RECORDER, machine, "power").unwrap_or_default();
        let present = POWER_EVENTS.iter().filter(|event| has(&known, event));
        events.extend(present.map(|event| (*event).to_owned()));
    }
    match events.is_empty() {
        // Only with -P, if the kernel has none of the power events. The message names one of these.
        true => Err(missing(machine, &format!("tracepoint {}", POWER_EVENTS[1]))),
        false => Ok(events),
    }
}

fn call_events(known: &[String]) -> Vec<String> {
    let mut events = Vec::new();
    for group in CALLS {
        for edge in ["enter", "exit"] {
            let names = group
                .iter()
                .map(|call| format!("syscalls:sys_{edge}_{call}"));
            events.extend(names.filter(|event| has(known, event)));
        }
    }
    events
}

/// Whether `known` has the event `event` (`system:name`). `known` has the names of the events of that system, without `system:`.
fn has(known: &[String], event: &str) -> bool {
    let name = event.split_once(':').map_or(event, |(_, name)| name);
    known.iter().any(|known| known == name)
}

/// Returns the error for a kernel without `tracepoints`: a tracepoint, or all tracepoints of a kind.
fn missing(machine: &MachineTracepoints, tracepoints: &str) -> CliError {
    let folder = machine.folder().display();
    CliError::message(
        255,
        format!("{RECORDER}: the kernel has no {tracepoints} in {folder}"),
    )
    .hint("-T records tasks, -P records CPUs, -I records system calls")
}
