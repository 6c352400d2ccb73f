//! Samples and their stacks, for the commands that show callchains; user stacks are unwound out of copies.

use std::mem;
use std::num::NonZeroUsize;

use rperf_hist::{Folded, Naming, NoPayloads, Options, Select, Source};
use rperf_perfdata::{Described, EventDesc};
use rperf_replay::Replay;
use rperf_resolve::{LEAF_REGISTERS, Resolver, StackOptions, StackSummary, UserStacks};
use rperf_wire::{BranchSampleType, SampleType};

use super::context::Context;
use super::symbols::shows_inlines;

/// The widest copy of a stack that the kernel makes.
const WIDEST: u32 = 65_528;

/// Whether samples carry what completes their callchains: copies of stacks, the processor's record of calls, or the link
/// register of 64-bit Arm.
pub(crate) fn has_copies(events: &[EventDesc]) -> bool {
    let wanted = SampleType::CALLCHAIN | SampleType::REGS_USER;
    let mut attrs = events.iter().map(|event| &event.attr);
    has_calls(events)
        || attrs.any(|attr| {
            let has_stack = attr.sample_type.contains(SampleType::STACK_USER);
            let has_link = attr.sample_regs_user == LEAF_REGISTERS;
            attr.sample_type.contains(wanted) && (has_stack || has_link)
        })
}

/// Whether branch stacks are records of calls (`--call-graph lbr`).
fn has_calls(events: &[EventDesc]) -> bool {
    let wanted = SampleType::CALLCHAIN | SampleType::BRANCH_STACK;
    let mut attrs = events.iter().map(|event| &event.attr);
    attrs.any(|attr| {
        let calls = attr
            .branch_sample_type
            .contains(BranchSampleType::CALL_STACK);
        attr.sample_type.contains(wanted) && calls
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
        outermost: false,
        calls: has_calls(recording.events),
    }
}

/// How many frames of user stacks are kept, and of the kernel's, where they are unwound; `None` where they aren't, or no
/// callchains are wanted. What is unwound comes cut to the limit of `options`, so that they need none any more.
pub(crate) fn unwinding_limit(recording: Described<'_>, options: &mut Options) -> Option<usize> {
    let unwinds = options.reads_chains() && has_copies(recording.events);
    unwinds.then(|| mem::replace(&mut options.max_stack, usize::MAX))
}

/// Folds all samples that `select` lets pass, and says what became of the user stacks that were unwound on the way; `limit`
/// is that of [`unwinding_limit`].
pub(crate) fn fold(
    replay: &Replay<'_>,
    (naming, resolver): (&Naming<'_, '_>, &Resolver<'_>),
    limit: Option<usize>,
    select: Option<&dyn Select>,
    jobs: NonZeroUsize,
) -> (Folded, StackSummary) {
    let options = StackOptions {
        outermost: naming.begins_with_callers(),
        ..stack_options(replay.data().described(), limit)
    };
    let stacks = UserStacks::new(resolver, options);
    let samples = replay.fold(jobs, || stacks.fold(naming.samples(select)));
    (samples.into_inner().finish(jobs), stacks.summary())
}

/// What histograms ask of a recording, for one without groups, sockets and texts of tracepoints. `inlines` is `--inline` or
/// `--no-inline`.
pub(crate) fn source(recording: Described<'_>, inlines: Option<bool>) -> Source<'static> {
    let attrs = || recording.events.iter().map(|event| &event.attr);
    Source {
        endian: recording.endian,
        callchains: attrs()
            .map(|attr| attr.sample_type.contains(SampleType::CALLCHAIN))
            .collect(),
        inlines: attrs().map(|attr| shows_inlines(attr, inlines)).collect(),
        groups: Vec::new(),
        sockets: Vec::new(),
        payloads: &NoPayloads,
    }
}

/// How many bytes of each stack were copied, at most.
pub(crate) fn copied(events: &[EventDesc]) -> Option<u32> {
    let events = events.iter();
    events.map(|event| event.attr.sample_stack_user).max()
}

/// Tells once how many of the stacks lack frames, and why; `copied` is how many bytes of each there were.
pub(crate) fn warn_of_cut(context: &Context, found: &StackSummary, copied: Option<u32>) {
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
        if !found.marked {
            context.note("hint: --mark-cut ends each of them in a frame that says why");
        }
    }
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
