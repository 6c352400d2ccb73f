//! `kwork record`: records the events of the classes of `-k` on the whole system; by default interrupts, softirqs and work items.

use std::ffi::OsString;

use clap::ArgMatches;
use rperf_analysis::kwork::KworkClass;
use rperf_events::Tracepoints as _;

use super::classes;
use super::table::CLASSES;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::shared::system_recording::{known_events, record_events, refuse_reading_options};
use crate::cli::tracefs::MachineTracepoints;

/// The command in messages.
const RECORDER: &str = "kwork record";

/// Records with the options and the workload in `words`, the words after `record`; `matches` has the options before it.
pub(super) fn run(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    refuse_reading_options(RECORDER, matches)?;
    let classes = classes(matches)?.unwrap_or_else(|| CLASSES.to_vec());
    let machine = MachineTracepoints::find(context.globals.debugfs_dir.as_deref());
    let mut names = Vec::new();
    for class in classes {
        names.extend(events(&machine, class)?.map(str::to_owned));
    }
    record_events(names, words, matches, context)
}

/// Returns the events of a class, after checking that this kernel has all of them.
fn events(
    machine: &MachineTracepoints,
    class: KworkClass,
) -> Result<impl Iterator<Item = &'static str>, CliError> {
    let events = || {
        class
            .raise_event()
            .into_iter()
            .chain(class.begin_and_end_events().iter().copied())
    };
    for event in events() {
        let (system, name) = event.split_once(':').unwrap_or_default();
        let known = known_events(RECORDER, machine, system)?;
        if !known.iter().any(|known| known == name) {
            let folder = machine.folder().join(system);
            let message = format!(
                "{RECORDER}: the kernel has no event {event} in {}",
                folder.display()
            );
            return Err(CliError::message(255, message)
                .hint("-k CLASS[,CLASS] records only the classes that the kernel has"));
        }
    }
    Ok(events())
}
