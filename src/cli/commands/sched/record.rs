//! `sched record`: records the scheduler's events of all tasks.

use std::ffi::OsString;

use clap::ArgMatches;
use rperf_events::Tracepoints as _;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::record_dump;
use crate::cli::shared::system_recording::{known_events, record_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The kernel's events that are always recorded, in perf's order.
const EVENTS: [&str; 5] = [
    "sched_switch",
    "sched_stat_runtime",
    "sched_process_fork",
    "sched_wakeup_new",
    "sched_migrate_task",
];
/// Events that are recorded if the kernel has them (`CONFIG_SCHEDSTATS`).
const STATISTICS: [&str; 3] = ["sched_stat_wait", "sched_stat_sleep", "sched_stat_iowait"];
/// The event of a wakeup, written in the context of the waker. This or [`WAKEUP`] is always recorded.
const WAKING: &str = "sched_waking";
/// Recorded instead if the kernel does not have [`WAKING`] (before Linux 4.3).
const WAKEUP: &str = "sched_wakeup";

/// The command in messages.
const RECORDER: &str = "sched record";

/// Records with the options and the workload in `arguments`.
pub(super) fn run(
    arguments: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_reading_options(RECORDER, matches)?;
    if record_dump::is_wanted(matches) {
        return Err(CliError::usage(format!(
            "{RECORDER} writes a recording; -D applies to reading"
        )));
    }
    let events = events(context)?.into_iter();
    let events = events.map(|event| format!("sched:{event}"));
    record_events(events, arguments, matches, context)
}

/// Returns the events to record, after checking that this kernel has all but the optional ones ([`STATISTICS`]).
fn events(context: &Context) -> Result<Vec<&'static str>, CliError> {
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let folder = machine.folder().join("sched");
    let known = known_events(RECORDER, &machine, "sched")?;
    let has = |name: &&str| known.iter().any(|known| known == name);
    let waking = if has(&WAKING) { WAKING } else { WAKEUP };
    if let Some(missing) = EVENTS.iter().chain([&waking]).find(|name| !has(name)) {
        let message = format!(
            "{RECORDER}: the kernel has no event sched:{missing} in {}",
            folder.display()
        );
        return Err(CliError::message(255, message)
            .hint("the kernel needs CONFIG_TRACEPOINTS and the scheduler's events"));
    }
    let statistics = STATISTICS.into_iter().filter(has);
    Ok(EVENTS
        .into_iter()
        .chain([waking])
        .chain(statistics)
        .collect())
}
