//! Why a recording could not be made, and the ways out.

use std::io;

use rperf_session::Error;
use rperf_sys::Proc;

use super::PROC;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// perf's exit statuses: failures in general, and targets that do not exist.
const FAILED: u8 = 255;
const NO_TARGET: u8 = 244;
/// What lets a program do without root.
const CAPABILITIES: &str = "CAP_PERFMON: setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep FILE";
/// The setting that says who may observe what.
const PARANOID: &str = "kernel.perf_event_paranoid";

/// Puts a session's error into words; `events` are the names of those asked for.
pub(crate) fn explain(context: &Context, events: &str, error: Error) -> CliError {
    match error {
        Error::NoSuchTask(id) => no_such_task(id),
        Error::NoSuchCpu { missing, online } => CliError::message(
            FAILED,
            format!("CPU {missing} is not online: choose from {online}"),
        ),
        Error::Open {
            event,
            cause,
            on_cpus,
            user_only,
            tracepoint,
            branches,
            refused: part,
            paranoid,
        } => {
            if branches && cause.raw_os_error() == Some(libc::EOPNOTSUPP) {
                return no_branches(&event);
            }
            if let Some(part) = part {
                return refused_for(&event, &part);
            }
            let observed = match (on_cpus, user_only) {
                _ if tracepoint => Observed::Tracepoint,
                (true, _) => Observed::Cpus,
                (false, false) => Observed::Kernel,
                (false, true) => Observed::Others,
            };
            let refusal = Refusal {
                event: &event,
                observed,
                paranoid,
            };
            refused(&refusal, &cause)
        }
        Error::IdleUser(user) => CliError::message(
            NO_TARGET,
            "Couldn't create thread/CPU maps: No such process",
        )
        .detail(format!("user {user} has no processes that can be seen")),
        Error::Workload { program, cause } => workload(events, &program.to_string_lossy(), &cause),
        Error::Output { path, cause } => {
            let cause = reason(&cause);
            CliError::message(
                FAILED,
                format!("failed to open {} : {cause}", path.display()),
            )
            .detail("Perf session creation failed.")
        }
        Error::Write { path, kept, cause } => {
            let message = format!("failed to write {}: {}", path.display(), reason(&cause));
            CliError::message(FAILED, message).detail(format!(
                "{kept} bytes of whole records are kept; '{} report -i {}' reads them",
                context.program,
                path.display()
            ))
        }
        Error::Filter {
            event,
            filter,
            cause,
        } => {
            let number = cause.raw_os_error().unwrap_or_default();
            let message = format!(
                "failed to set filter \"{filter}\" on event {event} with {number} ({})",
                reason(&cause)
            );
            CliError::message(FAILED, message)
        }
        Error::Map { pages, cpu, cause } => {
            let message = format!(
                "failed to map a ring of {pages} pages for CPU {cpu}: {}",
                reason(&cause)
            );
            CliError::message(FAILED, message)
                .hint("raise /proc/sys/kernel/perf_event_mlock_kb, or use a smaller -m")
        }
        other => CliError::failure(FAILED, other),
    }
}

/// What is said when only user space is recorded.
pub(crate) fn user_only_note(paranoid: Option<i64>) -> String {
    let level = paranoid.map_or(String::new(), |level| format!(" ({PARANOID} is {level})"));
    format!("the kernel may not be profiled by this user{level}: recording user space only")
}

/// The workload can't be run.
pub(crate) fn workload(events: &str, word: &str, cause: &io::Error) -> CliError {
    let cause = exec_reason(cause);
    CliError::message(
        FAILED,
        format!("Failed to collect '{events}' for the '{word}' workload: {cause}"),
    )
}

/// Why a program can't be run, in the system's words also where the search for it failed.
pub(crate) fn exec_reason(cause: &io::Error) -> String {
    match cause.kind() {
        io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        _ => reason(cause),
    }
}

fn no_branches(event: &str) -> CliError {
    let message = format!(
        "Error:\n{event}: PMU Hardware or event type doesn't support branch stack sampling."
    );
    CliError::message(FAILED, message).hint("for call graphs use --call-graph dwarf")
}

/// One part of the attr is to blame: everything else of it would be taken.
fn refused_for(event: &str, part: &str) -> CliError {
    let message = format!("Error:\nthe kernel refuses event {event} because of its {part}.");
    CliError::message(FAILED, message)
        .hint("without that it would be taken; -vv shows the attr that was tried")
}

fn no_such_task(id: u32) -> CliError {
    CliError::message(
        NO_TARGET,
        "Couldn't create thread/CPU maps: No such process",
    )
    .detail(format!("there is no process or thread {id}"))
}

/// The system's words for an error without Rust's addition of its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error") {
        Some(end) => text.get(..end).unwrap_or(&text).to_owned(),
        None => text,
    }
}

/// What the kernel refused.
struct Refusal<'a> {
    event: &'a str,
    observed: Observed,
    paranoid: Option<i64>,
}

/// What an event would have seen; decides what permission it needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observed {
    /// The inside of the kernel, whoever it works for.
    Tracepoint,
    /// Everything on whole CPUs.
    Cpus,
    /// The kernel, on behalf of some tasks.
    Kernel,
    /// The user space of some tasks, which then are another user's.
    Others,
}

fn refused(refusal: &Refusal<'_>, cause: &io::Error) -> CliError {
    let event = refusal.event;
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => denied(refusal),
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP) => {
            CliError::message(FAILED, format!("Error:\nThe {event} event is not supported."))
                .hint("this machine shows no counter for it; '-e cpu-clock' samples by a timer")
        }
        Some(libc::ESRCH) => CliError::message(NO_TARGET, "Couldn't create thread/CPU maps: No such process"),
        Some(libc::EMFILE) => CliError::message(FAILED, "Error:\nToo many events are opened.")
            .hint("the limit of open files was raised as far as it goes; 'ulimit -Hn' as root raises it, fewer -p or -C need less"),
        Some(libc::ENOSYS) => CliError::message(FAILED, format!("Error:\nthe kernel has no perf_event_open(2) for {event}"))
            .hint("CONFIG_PERF_EVENTS is off, or a seccomp filter hides the call"),
        Some(libc::EBUSY) => CliError::message(FAILED, format!("Error:\nThe PMU counters are busy/taken by another profiler (event {event}).")),
        _ => CliError::message(FAILED, format!("Error:\nthe kernel refused event {event}: {}", reason(cause))).hint("-vv shows the attr that was tried"),
    }
}

/// Not allowed: by the owner, by the sysctl, or, where that would allow it, by a seccomp filter.
fn denied(refusal: &Refusal<'_>) -> CliError {
    let Refusal {
        event,
        observed,
        paranoid,
    } = *refusal;
    let own = std::process::id();
    let filtered = Proc::new(PROC)
        .status(own, own)
        .is_ok_and(|status| status.is_filtered);
    let (what, needed) = match observed {
        Observed::Tracepoint => ("recording what tracepoints tell", -1),
        Observed::Cpus => ("observing whole CPUs", 0),
        Observed::Kernel => ("observing the kernel", 1),
        Observed::Others => ("observing user space", 2),
    };
    let is = paranoid.map_or_else(
        || "cannot be read".to_owned(),
        |level| format!("is {level}"),
    );
    let failed = |why: String| {
        let message = format!("Error:\nNo permission to open event {event}: {why}.");
        CliError::message(FAILED, message)
    };
    let allowed = paranoid.is_some_and(|level| level <= needed);
    let error = if allowed && filtered {
        failed(format!(
            "{PARANOID} {is} and would allow it, a seccomp filter does not"
        ))
    } else if allowed && observed == Observed::Others {
        failed("the process belongs to another user".to_owned()).hint("run it with sudo")
    } else {
        failed(format!(
            "{what} needs {PARANOID} at {needed} or less, and it {is}"
        ))
        .hint(format!(
            "run it with sudo, or give the program {CAPABILITIES}"
        ))
        .hint(format!(
            "or allow it to everyone: sudo sysctl {PARANOID}={needed}"
        ))
    };
    if filtered {
        return error.hint("in a container --cap-add PERFMON or --security-opt seccomp=unconfined lets the call through");
    }
    if observed == Observed::Cpus {
        return error
            .hint("without -a and -C a command of your own can be recorded, in user space");
    }
    error
}
