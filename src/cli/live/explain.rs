//! Why a recording could not be made, and the ways out.

use std::io;
use std::path::Path;

use rperf_safefs::{Naming, find_in_place};
use rperf_session::Error;

use super::refusal;
use crate::cli::context::Context;
use crate::cli::error::CliError;

/// perf's exit statuses: failures in general, and targets that do not exist.
pub(super) const FAILED: u8 = 255;
pub(super) const NO_TARGET: u8 = 244;
/// The setting that says who may observe what.
pub(super) const PARANOID: &str = "kernel.perf_event_paranoid";

/// Puts a session's error into words; `events` are the names of those asked for.
pub(crate) fn explain(context: &Context, events: &str, error: Error) -> CliError {
    match error {
        Error::NoSuchTask(id) => no_such_task(id),
        Error::NoSuchCpu { missing, online } => CliError::message(
            FAILED,
            format!("CPU {missing} is not online: choose from {online}"),
        ),
        Error::Open(refused) => refusal::explain(&refused),
        Error::IdleUser(user) => CliError::message(
            NO_TARGET,
            "Couldn't create thread/CPU maps: No such process",
        )
        .detail(format!("user {user} has no processes that can be seen")),
        Error::Workload { program, cause } => workload(events, &program.to_string_lossy(), &cause),
        Error::Output { path, cause } => output(&path, &cause),
        Error::Write { path, kept, cause } => {
            let message = format!("failed to write {}: {}", path.display(), reason(&cause));
            let error = CliError::message(FAILED, message);
            // A stream or a device has nothing to be read again.
            let is_device = |path| matches!(find_in_place(path, Naming::Given), Ok(Some(_)));
            if kept == 0 || is_device(&path) || !path.exists() {
                return error;
            }
            error.detail(format!(
                "{kept} bytes of whole records are kept; '{} report -i {}' reads them",
                context.program,
                path.display()
            ))
        }
        other => of_rings(other),
    }
}

/// The output cannot be made, or what it replaces cannot be moved out of its way.
fn output(path: &Path, cause: &io::Error) -> CliError {
    let message = format!("failed to open {} : {}", path.display(), reason(cause));
    let error = CliError::message(FAILED, message).detail("Perf session creation failed.");
    match cause.kind() {
        io::ErrorKind::DirectoryNotEmpty => error.hint(
            "something in this folder is of no recording: move it away, or name another output (-o)",
        ),
        _ => error,
    }
}

/// What stops a recording once its events are open.
fn of_rings(error: Error) -> CliError {
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
        Error::MapTrace {
            pages,
            event,
            cause,
        } => {
            let message = format!(
                "failed to map an AUX area of {pages} pages for event {event}: {}",
                reason(&cause)
            );
            CliError::message(FAILED, message)
                .hint("raise /proc/sys/kernel/perf_event_mlock_kb, or use smaller areas: -m ,64K")
        }
        Error::UnservedCpu { .. } => CliError::failure(FAILED, error).hint(
            "put it into one of the masks of --threads, or leave it out of the recording (-C)",
        ),
        Error::Bind { .. } => CliError::failure(FAILED, error)
            .hint("the CPUs have to be online, and allowed to this process (cpuset)"),
        Error::Thread(_) => CliError::failure(FAILED, error).hint(
            "threads are limited by memory (ulimit -v), ulimit -u and pids.max of the control group",
        ),
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
