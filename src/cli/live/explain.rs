//! Explains why a recording or a count failed, with hints.

use std::io;
use std::path::Path;

use rperf_safefs::{PathOrigin, find_in_place};
use rperf_session::Error;

use super::limits::setting;
use super::refusal;
use crate::cli::context::Context;
use crate::cli::error::{CliError, without_error_numbers};

/// perf's exit status for general failures.
pub(super) const FAILURE_STATUS: u8 = 255;
/// perf's exit status for targets that do not exist.
pub(crate) const NO_TARGET_STATUS: u8 = 244;
/// The sysctl that restricts unprivileged users.
pub(super) const PARANOID: &str = "kernel.perf_event_paranoid";

/// The file in `/proc/sys/kernel` with the limit of the memory that unprivileged users may lock for ring buffers.
pub(super) const MLOCK_KB: &str = "perf_event_mlock_kb";

/// Turns a session's error into a message; `events` are the names of the requested events.
pub(crate) fn explain(context: &Context, events: &str, error: Error) -> CliError {
    match error {
        Error::NoSuchTask(id) => no_such_task(id),
        Error::NoSuchCpu { missing, online } => CliError::message(
            FAILURE_STATUS,
            format!("CPU {missing} is not online: choose from {online}"),
        ),
        Error::Open(refused) => refusal::explain(&refused),
        Error::IdleUser(user) => CliError::message(
            NO_TARGET_STATUS,
            "Couldn't create thread/CPU maps: No such process",
        )
        .detail(format!("user {user} has no processes")),
        Error::Workload { program, cause } => {
            workload_failed(events, &program.to_string_lossy(), &cause)
        }
        Error::Output { path, cause } => output(&path, &cause),
        Error::Write { path, kept, cause } => {
            let message = format!("failed to write {}: {}", path.display(), reason(&cause));
            let error = CliError::message(FAILURE_STATUS, message);
            // `report` is not suggested for a FIFO or a device, which cannot be read again, nor for a regular file behind a link
            // such as `/dev/stdout`: for `report` the link leads to another file. `find_in_place` finds just these outputs.
            let is_unreadable =
                |path| matches!(find_in_place(path, PathOrigin::Given), Ok(Some(_)));
            if kept == 0 || is_unreadable(&path) || !path.exists() {
                return error;
            }
            error.detail(format!(
                "{kept} bytes of complete records were written; '{} report -i {}' reads them",
                context.program,
                path.display()
            ))
        }
        other => other_failure(other),
    }
}

/// The error for an output that cannot be created or renamed.
fn output(path: &Path, cause: &io::Error) -> CliError {
    let message = format!("failed to open {} : {}", path.display(), reason(cause));
    let error = CliError::message(FAILURE_STATUS, message).detail("Perf session creation failed.");
    match cause.kind() {
        io::ErrorKind::DirectoryNotEmpty => error.hint(
            "the directory contains files that do not belong to a recording: move them, or name another output (-o)",
        ),
        _ => error,
    }
}

/// The errors that [`explain`] does not handle itself.
fn other_failure(error: Error) -> CliError {
    match error {
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
            CliError::message(FAILURE_STATUS, message)
        }
        Error::Map { pages, cpu, cause } => {
            let message = format!(
                "failed to map a ring buffer of {pages} pages for CPU {cpu}: {}",
                reason(&cause)
            );
            CliError::message(FAILURE_STATUS, message)
                .hint(format!("raise {}, or use a smaller -m", setting(MLOCK_KB)))
        }
        Error::MapTrace {
            pages,
            event,
            cause,
        } => {
            let message = format!(
                "failed to map an AUX area of {pages} pages for event {event}: {}",
                reason(&cause)
            );
            CliError::message(FAILURE_STATUS, message)
                .hint(format!("raise {}, or use smaller areas: -m ,64K", setting(MLOCK_KB)))
        }
        Error::UnservedCpu { .. } => CliError::failure(FAILURE_STATUS, error).hint(
            "add it to one of the masks of --threads, or exclude it with -C",
        ),
        Error::Bind { .. } => CliError::failure(FAILURE_STATUS, error)
            .hint("these CPUs must be online and allowed for this process (cpuset)"),
        Error::NoSchedstat { .. } => CliError::failure(FAILURE_STATUS, error)
            .hint("the kernel must be built with CONFIG_SCHEDSTATS, and kernel.sched_schedstats be 1"),
        Error::SchedstatsOff(_) => CliError::failure(FAILURE_STATUS, error)
            .hint("run as root, or let root set it: sysctl kernel.sched_schedstats=1"),
        Error::Thread(_) => CliError::failure(FAILURE_STATUS, error).hint(
            "check the limits: memory (ulimit -v), processes (ulimit -u) and pids.max of the cgroup",
        ),
        Error::Bpf(error) => of_bpf(error),
        other => CliError::failure(FAILURE_STATUS, other),
    }
}

/// The error of a BPF program.
fn of_bpf(error: rperf_bpf::Error) -> CliError {
    let hint = match &error {
        rperf_bpf::Error::NoProgram { .. } => {
            "bpftool prog, or the header of 'record -a' ('report --header-only'), lists loaded programs"
        }
        rperf_bpf::Error::NoProgramTypes { .. } => {
            "compile the program with -g, and load it with its BTF"
        }
        _ => "count without --bpf-counters, --bpf-prog and the modifier b",
    };
    CliError::failure(FAILURE_STATUS, error).hint(hint)
}

/// The note that only user space is observed; `doing` is what the command does: `recording`, `counting`.
pub(crate) fn user_only_note(paranoid: Option<i64>, doing: &str) -> String {
    let level = paranoid.map_or(String::new(), |level| format!(" ({PARANOID} is {level})"));
    format!("this user may not profile the kernel{level}: {doing} user space only")
}

/// The warning for an event that was restricted to user space, where it never fires.
pub(crate) fn silent_in_user_space(event: &str) -> String {
    let bare = event.split(':').next().unwrap_or(event);
    format!(
        "{event} never counts: {bare} happens in the kernel, which needs {PARANOID} at 1 or less, or CAP_PERFMON"
    )
}

/// The error for a workload that can't be run.
pub(crate) fn workload_failed(events: &str, program: &str, cause: &io::Error) -> CliError {
    let cause = exec_reason(cause);
    CliError::message(
        FAILURE_STATUS,
        format!("Failed to collect '{events}' for the '{program}' workload: {cause}"),
    )
}

/// Returns why a program can't be found or run, in the wording of strerror(3).
pub(crate) fn exec_reason(cause: &io::Error) -> String {
    // Errors of the search in PATH have only a kind, and Rust's own text for it.
    match cause.kind() {
        io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "Permission denied".to_owned(),
        _ => reason(cause),
    }
}

fn no_such_task(id: u32) -> CliError {
    CliError::message(
        NO_TARGET_STATUS,
        "Couldn't create thread/CPU maps: No such process",
    )
    .detail(format!("process or thread {id} does not exist"))
}

/// Returns the system's text for an error, without the number that Rust appends.
pub(crate) fn reason(error: &io::Error) -> String {
    without_error_numbers(&error.to_string())
}
