//! Results of calls as text.

use std::io::{self, Write};

use crate::arguments::{write_open_flags, write_pid};
use crate::constants as names;
use crate::{CallArguments, TaskNames, error_name, error_text};

/// The largest error number that the kernel returns (`MAX_ERRNO` in linux/err.h).
const MAX_ERRNO: i64 = 4095;

/// Returns the errno of a result: results from -4095 to -1 are negated errnos. `None` if the call succeeded.
#[must_use]
pub fn error_number(result: i64) -> Option<u32> {
    let is_error = (-MAX_ERRNO..0).contains(&result);
    is_error.then(|| u32::try_from(-result).unwrap_or_default())
}

/// Writes the result of a call, without ` = `. `task` has the names for ids of tasks in the result.
///
/// # Errors
/// Errors of `to`.
pub fn write_result(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    result: i64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    if let Some(error) = error_number(result) {
        return write_error(to, error);
    }
    let name = call.syscall.map_or("", |syscall| syscall.name);
    match name {
        "brk" | "mmap" | "mmap2" | "mremap" | "shmat" => write!(to, "{result:#x}"),
        "clone" | "clone3" | "fork" | "vfork" | "getpid" | "getppid" | "gettid" | "getpgid"
        | "getpgrp" | "set_tid_address" | "wait4" | "waitpid" => write_pid(to, result as u64, task),
        "poll" | "ppoll" | "select" | "ppoll_time64" | "_newselect" if result == 0 => {
            to.write_all(b"0 (Timeout)")
        }
        "fcntl" | "fcntl64" => write_fcntl(to, call, result, task),
        _ => write!(to, "{result}"),
    }
}

fn write_error(to: &mut dyn Write, number: u32) -> io::Result<()> {
    match error_name(number) {
        Some(name) => write!(to, "-1 {name} ({})", error_text(number)),
        None => write!(to, "-1 (error {number})"),
    }
}

fn write_fcntl(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    result: i64,
    task: &dyn TaskNames,
) -> io::Result<()> {
    let [_, command, ..] = call.values;
    // F_GETFD, F_GETFL, F_GETOWN and F_GETLEASE of linux/fcntl.h.
    match (command, result) {
        (1, 1) => to.write_all(b"CLOEXEC"),
        (3, _) => write_open_flags(to, call.abi, result as u64),
        (9, _) => write_pid(to, result as u64, task),
        (1025, _) => to.write_all(names::LEASE.text(result as u64).as_bytes()),
        _ => write!(to, "{result}"),
    }
}
