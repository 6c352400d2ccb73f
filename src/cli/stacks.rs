//! Samples and their stacks, for the commands that show callchains; user stacks are unwound out of copies.

use std::mem;
use std::num::NonZeroUsize;

use rperf_hist::{NoPayloads, Options, Samples, Select, Source};
use rperf_perfdata::{Described, EventDesc};
use rperf_replay::Replay;
use rperf_resolve::{LEAF_REGISTERS, Resolver, StackOptions, StackSummary, UserStacks};
use rperf_wire::SampleType;

use super::context::Context;
use super::symbols::shows_inlines;

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

/// Samples folded by what they hold, and the user stacks that were unwound on the way.
pub(crate) struct Folded<'s> {
    pub(crate) samples: Samples<'s>,
    pub(crate) stacks: StackSummary,
}

impl<'s> Folded<'s> {
    /// Folds all samples that `select` lets pass. Where stacks are unwound, the limit of `options` is spent on them: kernel
    /// and user frames come cut to it each.
    pub(crate) fn new(
        replay: &Replay<'_>,
        resolver: &Resolver<'_>,
        options: &mut Options,
        select: Option<&'s dyn Select>,
        jobs: NonZeroUsize,
    ) -> Result<Self, rperf_replay::Error> {
        let recording = replay.data().described();
        let wants_chains = options.children || options.graph.is_some();
        let unwinds = wants_chains && has_copies(recording.events);
        let limit = unwinds.then(|| mem::replace(&mut options.max_stack, usize::MAX));
        let stacks = UserStacks::new(resolver, stack_options(recording, limit));
        let samples = replay.fold(jobs, || stacks.fold(Samples::new(options, select)))?;
        Ok(Self {
            samples: samples.into_inner(),
            stacks: stacks.summary(),
        })
    }
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
