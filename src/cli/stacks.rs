//! User stacks that are unwound out of copies, for the commands that show callchains.

use rperf_perfdata::{Described, EventDesc};
use rperf_resolve::{LEAF_REGISTERS, StackOptions, StackSummary};
use rperf_wire::SampleType;

use super::context::Context;

/// The widest copy of a stack that the kernel makes.
const WIDEST: u32 = 65_528;

/// Whether samples carry what completes their callchains: copies of stacks, or the link register of 64-bit Arm.
pub(crate) fn has_copies(events: &[EventDesc]) -> bool {
    let wanted = SampleType::CALLCHAIN | SampleType::REGS_USER;
    let mut attrs = events.iter().map(|event| &event.attr);
    attrs.any(|attr| {
        let has_stack = attr.sample_type.contains(SampleType::STACK_USER);
        let has_link = attr.sample_regs_user == LEAF_REGISTERS;
        attr.sample_type.contains(wanted) && (has_stack || has_link)
    })
}

/// How the user stacks of `recording` are unwound. `limit` is how many frames are kept of the kernel and of user space;
/// without one nothing is unwound.
pub(crate) fn stack_options(recording: Described<'_>, limit: Option<usize>) -> StackOptions {
    let machine = recording.features.arch();
    StackOptions {
        machine: machine
            .unwrap_or_else(|| std::env::consts::ARCH.into())
            .to_string(),
        endian: recording.endian,
        limit,
    }
}

/// Tells once how many of the stacks lack frames, and why.
pub(crate) fn warn_of_cut(context: &Context, found: &StackSummary, events: &[EventDesc]) {
    let cut = found.incomplete();
    if cut > 0 {
        let causes = found.cut.iter().map(|cut| match &cut.object {
            Some(object) => format!("{} {} (as {object})", cut.stacks, cut.cause),
            None => format!("{} {}", cut.stacks, cut.cause),
        });
        let causes: Vec<String> = causes.collect();
        context.warn(format_args!(
            "{cut} of {} user stacks lack their outer frames: {}",
            found.stacks,
            causes.join(", ")
        ));
    }
    let copied = events
        .iter()
        .map(|event| event.attr.sample_stack_user)
        .max();
    if found.is_copied_too_short()
        && let Some(copied) = copied
        && copied < WIDEST
    {
        let wider = copied.saturating_mul(2).min(WIDEST);
        context.note(format_args!(
            "hint: {copied} bytes of each stack were copied; record with --call-graph dwarf,{wider} for more"
        ));
    }
    if found.guessed > 0 {
        context.note(format_args!(
            "{} of {} user stacks have frames that rest on frame pointers alone, for want of unwind information",
            found.guessed, found.stacks
        ));
    }
}
