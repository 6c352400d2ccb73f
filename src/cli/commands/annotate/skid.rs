//! A word on samples that are taken behind the instruction that they are of.

use rperf_perfdata::EventDesc;
use rperf_wire::EventType;

use crate::cli::context::Context;

/// Software clocks: `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_TASK_CLOCK`.
const CLOCKS: [u64; 2] = [0, 1];

/// Says so, where one of these events was sampled that way.
pub(super) fn tell<'e>(mut events: impl Iterator<Item = &'e EventDesc>, context: &Context) {
    if let Some(event) = events.find(|event| skids(event)) {
        context.note(format_args!(
            "note: samples of {} name the instruction that would have come next: hits may belong to the one before",
            event.name
        ));
    }
}

/// Whether the processor goes on for a while before the kernel sees where it is.
fn skids(event: &EventDesc) -> bool {
    let attr = &event.attr;
    match attr.kind {
        EventType::SOFTWARE => CLOCKS.contains(&attr.config),
        EventType::HARDWARE | EventType::HW_CACHE | EventType::RAW => attr.precise_ip() == 0,
        _ => false,
    }
}
