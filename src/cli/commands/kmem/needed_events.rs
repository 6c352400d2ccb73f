//! The events that the subcommands of `kmem` need.

use rperf_analysis::EventLayouts;
use rperf_analysis::kmem::{PAGE_EVENTS, SLAB_EVENTS};

use super::Allocators;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::recorded_fields::{lacks_descriptions, require_fields};

/// The events of an allocator.
#[derive(Clone, Copy)]
struct AllocatorEvents {
    /// The allocator's name, which is also that of its option.
    name: &'static str,
    events: &'static [&'static str],
}

const SLAB: AllocatorEvents = AllocatorEvents {
    name: "slab",
    events: &SLAB_EVENTS,
};
const PAGE: AllocatorEvents = AllocatorEvents {
    name: "page",
    events: &PAGE_EVENTS,
};

/// Returns the events of each selected allocator, after checking that at least one event of each was recorded, and that the
/// samples of the recorded events have time, CPU and raw data.
///
/// # Errors
///
/// Status 255: the recording has no events of a selected allocator, or the samples of an event lack one of these fields.
pub(super) fn require_events(
    analysis: &Analysis<'_>,
    allocators: Allocators,
    layouts: &EventLayouts,
) -> Result<Vec<&'static [&'static str]>, CliError> {
    let has = |allocator: AllocatorEvents| allocator.events.iter().any(|event| layouts.has(event));
    let all = [(allocators.slab, SLAB, PAGE), (allocators.page, PAGE, SLAB)];
    let mut needed = Vec::new();
    for (is_selected, allocator, other) in all {
        if !is_selected {
            continue;
        }
        let AllocatorEvents { name, events } = allocator;
        if !has(allocator) {
            let program = analysis.context.program;
            let message = format!(
                "No {name} allocation events found.  Have you run '{program} kmem record --{name}'?"
            );
            let recorded_other = has(other).then_some(other.name);
            let hint = missing_events(analysis, recorded_other)?;
            return Err(CliError::message(255, message).hint(hint));
        }
        require_fields(analysis, |event| events.contains(&event), "kmem record")?;
        needed.push(events);
    }
    Ok(needed)
}

/// Returns why a recording has no events of an allocator, as a hint. `other` is the other allocator, if its events were recorded.
fn missing_events(analysis: &Analysis<'_>, other: Option<&str>) -> Result<String, CliError> {
    let path = analysis.input.path.display();
    let is_incomplete = lacks_descriptions(analysis)?;
    Ok(match other {
        Some(other) => format!("{path} only has events of the {other} allocator: use --{other}"),
        None if is_incomplete => {
            format!("the descriptions of the tracepoints in {path} are missing")
        }
        None => format!("{path} has no events of the slab and page allocators"),
    })
}
