//! `trace record`: runs `record` with the events of system calls.

use std::ffi::{OsStr, OsString};

use clap::ArgMatches;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};

/// The options that are passed to `record` before those of the user.
const OPTIONS: [&str; 7] = [
    "-R",
    "-m",
    "1024",
    "-c",
    "1",
    "-e",
    "raw_syscalls:sys_enter,raw_syscalls:sys_exit",
];

/// Options of `trace` that are refused before the word `record`.
const REFUSED: &[&str] = &[
    "all-cpus",
    "cgroup",
    "comm",
    "cpu",
    "event",
    "input",
    "mmap-pages",
    "no-inherit",
    "pid",
    "syscalls",
    "tid",
    "uid",
    "output",
    "time",
    "summary",
    "with-summary",
    "errno-summary",
    "failure",
    "duration",
    "delay",
    "json",
    "exec-tree",
    "filter",
    "filter-pids",
    "switch-on",
    "switch-off",
    "show-on-off-events",
    "string-size",
    "sched",
    "bpf-summary",
    "summary-mode",
    "sort-events",
    "max-events",
    "pf",
    "call-graph",
    "kernel-syscall-graph",
    "max-stack",
    "force-btf",
    "min-stack",
];

/// Runs `record` with the options and the workload in `words`.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let given = REFUSED
        .iter()
        .find(|id| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine));
    if let Some(option) = given {
        return Err(
            CliError::usage(format!("--{option} does not apply to 'trace record'"))
                .hint("options of 'record' follow the word: trace record -o FILE -- COMMAND"),
        );
    }
    let mut arguments: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    arguments.extend_from_slice(words);
    dispatch(context, OsStr::new("record"), &arguments)
}
