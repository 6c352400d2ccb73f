//! The events that the subcommands of `kmem` need.

use rperf_analysis::EventLayouts;
use rperf_analysis::kmem::{PAGE_EVENTS, SLAB_EVENTS};

use super::Allocators;
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::recorded_fields::{lacks_descriptions, require_fields};

/// An allocator's option, without the dashes, and its events.
type AllocatorEvents = (&'static str, &'static [&'static str]);

const SLAB: AllocatorEvents = ("slab", &SLAB_EVENTS);
const PAGE: AllocatorEvents = ("page", &PAGE_EVENTS);

/// Returns the events of the selected allocators, after checking that the recording has some of each, with the needed fields.
///
/// # Errors
///
/// Status 255: the recording has no events of a selected allocator, or the events lack a field.
pub(super) fn require_events(
    analysis: &Analysis<'_>,
    allocators: Allocators,
    layouts: &EventLayouts,
) -> Result<Vec<&'static [&'static str]>, CliError> {
    let has = |(_, events): AllocatorEvents| events.iter().any(|event| layouts.has(event));
    let all = [(allocators.slab, SLAB, PAGE), (allocators.page, PAGE, SLAB)];
    let mut needed = Vec::new();
    for (_, selected, other) in all.into_iter().filter(|(is_selected, ..)| *is_selected) {
        let (name, events) = selected;
        if !has(selected) {
            let program = analysis.context.program;
            let message = format!(
                "No {name} allocation events found.  Have you run '{program} kmem record --{name}'?"
            );
            let other = Some(other.0).filter(|_| has(other));
            return Err(CliError::message(255, message).hint(missing_events(analysis, other)?));
        }
        require_fields(analysis, |name| events.contains(&name), "kmem record")?;
        needed.push(events);
    }
    Ok(needed)
}

/// Returns why a recording has no events of an allocator. `other` is the other allocator, if its events were recorded.
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
