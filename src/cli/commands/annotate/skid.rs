//! The note on sample skid.

use rperf_perfdata::EventDesc;
use rperf_wire::EventType;

use crate::cli::context::Context;

/// Prints a note on the first of these events whose samples may skid.
pub(super) fn note<'e>(mut events: impl Iterator<Item = &'e EventDesc>, context: &Context) {
    if let Some(event) = events.find(|event| skids(event)) {
        context.note(format_args!(
            "note: samples of {} are often attributed to a later instruction: hits may belong to an earlier one",
            event.name
        ));
    }
}

/// Whether samples of the event may skid: point to an instruction after the one that caused the event.
fn skids(event: &EventDesc) -> bool {
    let attr = &event.attr;
    match attr.kind {
        // A clock's samples are taken in its timer interrupt, which may come late. Samples of other software events do not skid:
        // they are taken where the kernel counts the event.
        EventType::SOFTWARE => attr.is_clock(),
        EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW => attr.precise_ip() == 0,
        _ => false,
    }
}
