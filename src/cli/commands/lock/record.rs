//! `lock record` and `lock script`.

use std::ffi::{OsStr, OsString};

use clap::ArgMatches;
use rperf_events::Tracepoints as _;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::shared::system_recording::{known_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The command in messages.
const RECORDER: &str = "lock record";

/// The options of `record` before those of the user.
const OPTIONS: [&str; 10] = [
    "-R",
    "-m",
    "1024",
    "-c",
    "1",
    "-g",
    "-e",
    "lock:contention_begin",
    "-e",
    "lock:contention_end",
];

/// Records with the options and the workload in `words`.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_reading_options(RECORDER, matches)?;
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let known = known_events(RECORDER, &machine, "lock")?;
    if !known.iter().any(|name| name == "contention_begin") {
        let folder = machine.folder().join("lock");
        let message = format!(
            "{RECORDER}: the kernel has no event contention_begin in {}",
            folder.display()
        );
        return Err(CliError::message(255, message)
            .hint("Linux 5.19 and later have it; the lock events of older kernels (CONFIG_LOCKDEP, CONFIG_LOCK_STAT) are not supported"));
    }
    let mut all: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    all.extend_from_slice(words);
    dispatch(context, OsStr::new("record"), &all)
}

/// Prints the events of a recording with the options of `script`.
pub(super) fn script(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut all = Vec::new();
    for option in ["input", "vmlinux", "kallsyms"] {
        if let Some(value) = matches.get_one::<String>(option) {
            all.extend([format!("--{option}").into(), OsString::from(value)]);
        }
    }
    all.extend_from_slice(words);
    dispatch(context, OsStr::new("script"), &all)
}
