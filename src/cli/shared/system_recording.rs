//! Records tracepoints of the whole system by calling `record`, for subcommands such as `sched record`.

use std::ffi::{OsStr, OsString};
use std::io;

use clap::ArgMatches;
use rperf_events::Tracepoints as _;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::tracefs::MachineTracepoints;

/// The options of `record` before those of the user: the whole system, raw data, 1024 pages per CPU, a sample of every event.
const OPTIONS: [&str; 6] = ["-a", "-R", "-m", "1024", "-c", "1"];

/// Refuses `-i` and `-f` before the word `record`; `recorder` is the command, such as `sched record`.
///
/// # Errors
///
/// Status 129: one of them was given.
pub(crate) fn refuse_reading_options(recorder: &str, matches: &ArgMatches) -> Result<(), CliError> {
    match matches.get_one::<String>("input").is_some() || flag(matches, "force") == Some(true) {
        true => Err(CliError::usage(format!(
            "{recorder} writes a recording; -i and -f apply to reading"
        ))
        .hint("-o FILE after 'record' names the output file")),
        false => Ok(()),
    }
}

/// Returns the names of the kernel's tracepoints of `system`.
///
/// # Errors
///
/// Status 255: tracefs cannot be read.
pub(crate) fn known_events(
    recorder: &str,
    machine: &MachineTracepoints,
    system: &str,
) -> Result<Vec<String>, CliError> {
    machine.names(system).map_err(|error| {
        let folder = machine.folder().join(system);
        let message = format!("{recorder}: {}: {error}", folder.display());
        CliError::message(255, message).hint(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run as root, or let this user read tracefs: mount -o remount,mode=755 /sys/kernel/tracing"
            }
            _ => "mount tracefs: mount -t tracefs nodev /sys/kernel/tracing",
        })
    })
}

/// Records `events` of all tasks with the options and the workload in `words`.
///
/// # Errors
///
/// Those of `record`.
pub(crate) fn record_events(
    events: impl IntoIterator<Item = String>,
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut arguments: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    for event in events {
        arguments.extend(["-e".into(), event.into()]);
    }
    let verbose = usize::from(matches.get_count("verbose"));
    arguments.extend(std::iter::repeat_n("-v".into(), verbose));
    arguments.extend_from_slice(words);
    dispatch(context, OsStr::new("record"), &arguments)
}
