//! `sched record`: records the scheduler's events of all tasks.

use std::ffi::{OsStr, OsString};
use std::io;

use clap::ArgMatches;
use rperf_events::Tracepoints as _;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::tracefs::MachineTracepoints;

/// The kernel's events that are always recorded, in perf's order.
const EVENTS: [&str; 5] = [
    "sched_switch",
    "sched_stat_runtime",
    "sched_process_fork",
    "sched_wakeup_new",
    "sched_migrate_task",
];
/// Recorded if the kernel has them (`CONFIG_SCHEDSTATS`).
const STATISTICS: [&str; 3] = ["sched_stat_wait", "sched_stat_sleep", "sched_stat_iowait"];
/// Since Linux 4.3, in the context of the waker; `sched_wakeup` in older kernels.
const WAKING: &str = "sched_waking";
const WAKEUP: &str = "sched_wakeup";

/// The options of `record` before those of the user: the whole system, raw data, 1024 pages per CPU, every event.
const OPTIONS: [&str; 6] = ["-a", "-R", "-m", "1024", "-c", "1"];

/// Records with the options and the workload in `words`.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    if matches.get_one::<String>("input").is_some() || flag(matches, "force") == Some(true) {
        return Err(
            CliError::usage("sched record writes a recording; -i and -f apply to reading")
                .hint("-o FILE after 'record' names the output file"),
        );
    }
    let mut all: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    for event in events(context)? {
        all.extend(["-e".into(), format!("sched:{event}").into()]);
    }
    let verbose = usize::from(matches.get_count("verbose"));
    all.extend(std::iter::repeat_n("-v".into(), verbose));
    all.extend_from_slice(words);
    dispatch(context, OsStr::new("record"), &all)
}

/// Returns the events that this kernel has.
fn events(context: &Context) -> Result<Vec<&'static str>, CliError> {
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let folder = machine.folder().join("sched");
    let known = machine.names("sched").map_err(|error| {
        let message = format!("sched record: {}: {error}", folder.display());
        CliError::message(255, message).hint(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run as root, or let this user read tracefs: mount -o remount,mode=755 /sys/kernel/tracing"
            }
            _ => "mount tracefs: mount -t tracefs nodev /sys/kernel/tracing",
        })
    })?;
    let has = |name: &&str| known.iter().any(|known| known == name);
    let waking = if has(&WAKING) { WAKING } else { WAKEUP };
    if let Some(missing) = EVENTS.iter().chain([&waking]).find(|name| !has(name)) {
        let message = format!(
            "sched record: the kernel has no event sched:{missing} in {}",
            folder.display()
        );
        return Err(CliError::message(255, message)
            .hint("the kernel needs CONFIG_TRACEPOINTS and the scheduler's events"));
    }
    let statistics = STATISTICS.into_iter().filter(has);
    Ok(EVENTS
        .into_iter()
        .chain(statistics)
        .chain([waking])
        .collect())
}
