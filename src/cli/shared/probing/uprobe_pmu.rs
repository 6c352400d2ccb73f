//! Temporary events if tracefs is not mounted: uprobes through the kernel's `uprobe` PMU.

use std::collections::BTreeSet;
use std::ffi::CString;

use rperf_events::{EventSpec, Uprobe};
use rperf_probe::{ProbeEvent, ProbeTarget, distinct_name};

use super::{DefinitionResult, described};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use rperf_sys::read_pseudo_file_text;

/// The file with the type number of the PMU.
const PMU_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Returns the events of definitions, and prints notes on them. `error` says why they cannot be created in tracefs. It is
/// returned if the kernel lacks the PMU, or if a definition has arguments or is not of a program, which the PMU does not support.
pub(crate) fn specs(
    results: Vec<DefinitionResult>,
    error: CliError,
    context: &Context,
) -> Result<Vec<EventSpec>, CliError> {
    let text = read_pseudo_file_text(PMU_TYPE).ok();
    let Some(pmu_type) = text.and_then(|number| number.trim().parse().ok()) else {
        return Err(error);
    };
    let mut specs = Vec::new();
    let mut taken = BTreeSet::new();
    let mut lines = Vec::new();
    for DefinitionResult {
        definition, events, ..
    } in results
    {
        // `place` is only given if the definition has several places in one object.
        for (event, place) in events {
            let Some(probe) = uprobe(&event, pmu_type) else {
                return Err(error.hint(
                    "tracefs is not needed for probes of programs that record no arguments: --probe PROGRAM:FUNCTION",
                ));
            };
            let full_name = event.full_name();
            // If all numbered names are taken, too, events have the same name.
            let name = distinct_name(&full_name, &taken).unwrap_or(full_name);
            taken.insert(name.clone());
            let description = described(&definition, place.as_deref(), &event.target);
            lines.push(format!("  {name:<20} {description}"));
            specs.push(EventSpec::of_uprobe(name, probe));
        }
    }
    let plural = if lines.len() > 1 { "s" } else { "" };
    context.note(format_args!(
        "Added new event{plural} for this run, by the uprobe PMU because tracefs is not mounted:"
    ));
    for line in lines {
        context.note(line);
    }
    Ok(specs)
}

/// Returns the uprobe of an event; `None` if the PMU does not support the event.
fn uprobe(event: &ProbeEvent, pmu_type: u32) -> Option<Uprobe> {
    let ProbeTarget::Program {
        object,
        file_offset,
        semaphore,
    } = &event.target
    else {
        return None;
    };
    if !event.fields.is_empty() {
        return None;
    }
    // `config` of the PMU has 32 bits for the offset of the semaphore.
    let semaphore = semaphore.map(u32::try_from).transpose().ok()?;
    Some(Uprobe {
        pmu: pmu_type,
        path: CString::new(object.as_str()).ok()?,
        offset: *file_offset,
        semaphore,
        is_return: event.is_return,
    })
}
