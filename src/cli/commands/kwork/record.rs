//! `kwork record`: records interrupts, softirqs and work items of the whole system, on request also context switches.

use std::ffi::{OsStr, OsString};
use std::io;

use clap::ArgMatches;
use rperf_analysis::kwork::KworkClass;
use rperf_events::Tracepoints as _;

use super::classes;
use super::table::CLASSES;
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::tracefs::MachineTracepoints;

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
            CliError::usage("kwork record writes a recording; -i and -f apply to reading")
                .hint("-o FILE after 'record' names the output file"),
        );
    }
    let classes = classes(matches)?.unwrap_or_else(|| CLASSES.to_vec());
    let mut all: Vec<OsString> = OPTIONS.iter().map(OsString::from).collect();
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    for class in classes {
        for event in events(&machine, class)? {
            all.extend(["-e".into(), event.into()]);
        }
    }
    let verbose = usize::from(matches.get_count("verbose"));
    all.extend(std::iter::repeat_n("-v".into(), verbose));
    all.extend_from_slice(words);
    dispatch(context, OsStr::new("record"), &all)
}

/// Returns the events of a class, all of which this kernel must have.
fn events(
    machine: &MachineTracepoints,
    class: KworkClass,
) -> Result<impl Iterator<Item = &'static str>, CliError> {
    let events = || {
        class
            .raise()
            .into_iter()
            .chain(class.begin_and_end().iter().copied())
    };
    for event in events() {
        let (system, name) = event.split_once(':').unwrap_or_default();
        let folder = machine.folder().join(system);
        let known = machine.names(system).map_err(|error| {
            let message = format!("kwork record: {}: {error}", folder.display());
            CliError::message(255, message).hint(match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run as root, or let this user read tracefs: mount -o remount,mode=755 /sys/kernel/tracing"
                }
                _ => "mount tracefs: mount -t tracefs nodev /sys/kernel/tracing",
            })
        })?;
        if !known.iter().any(|known| known == name) {
            let message = format!(
                "kwork record: the kernel has no event {event} in {}",
                folder.display()
            );
            return Err(CliError::message(255, message)
                .hint("-k CLASS[,CLASS] records only the classes that the kernel has"));
        }
    }
    Ok(events())
}
