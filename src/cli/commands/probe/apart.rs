//! Events of one run where tracefs is not mounted: places of programs by the kernel's `uprobe` PMU.

use std::collections::BTreeSet;
use std::ffi::CString;

use rperf_events::{EventSpec, Uprobe};
use rperf_probe::{Event, Target, distinct_name};

use super::Defined;
use super::add::told;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use rperf_sys::kernel_text;

const PMU: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The events of definitions; `error` says why they cannot be made in tracefs, and is what comes of those with values.
pub(super) fn specs(
    defined: Vec<Defined>,
    error: CliError,
    context: &Context,
) -> Result<Vec<EventSpec>, CliError> {
    let number = kernel_text(PMU).ok();
    let Some(pmu) = number.and_then(|number| number.trim().parse().ok()) else {
        return Err(error);
    };
    let mut specs = Vec::new();
    let mut taken = BTreeSet::new();
    let mut lines = Vec::new();
    for Defined {
        definition, events, ..
    } in defined
    {
        for (event, place) in events {
            let Some(place_in_file) = uprobe(&event, pmu) else {
                return Err(error.hint(
                    "places of programs need no tracefs if no values are asked for: --probe PROGRAM:FUNCTION",
                ));
            };
            let full = event.full_name();
            let name = distinct_name(&full, &taken).unwrap_or(full);
            taken.insert(name.clone());
            let told = told(&definition, place.as_deref(), &event.target);
            lines.push(format!("  {name:<20} {told}"));
            specs.push(EventSpec::of_uprobe(name, &place_in_file));
        }
    }
    let several = if lines.len() > 1 { "s" } else { "" };
    context.note(format_args!(
        "Added new event{several} for this run, of the kernel's uprobe unit as tracefs is not mounted:"
    ));
    for line in lines {
        context.note(line);
    }
    Ok(specs)
}

/// `None` for what the PMU cannot observe.
fn uprobe(event: &Event, pmu: u32) -> Option<Uprobe> {
    let Target::Program {
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
    let semaphore = semaphore.map(u32::try_from).transpose().ok()?;
    // The kernel reads the path when the event is opened, which may be for each CPU and thread.
    let path: &'static CString = Box::leak(Box::new(CString::new(object.as_str()).ok()?));
    Some(Uprobe {
        pmu,
        path: u64::try_from(path.as_ptr().expose_provenance()).ok()?,
        offset: *file_offset,
        semaphore,
        is_return: event.is_return,
    })
}
