//! Folds samples (sums them up by their sort keys) for the commands that show callchains, and completes their user
//! callchains, mostly from stack copies.

use std::mem;
use std::num::NonZeroUsize;

use rperf_hist::{
    FoldedSamples, HistogramOptions, NamingContext, NoPayloads, RecordingInfo, SelectSamples,
};
use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::{Fold, Replay, Sample, World};
use rperf_resolve::{
    Resolver, StackOptions, StackSummary, UserStacks, completes_callchains, has_lbr_call_stacks,
};
use rperf_wire::SampleType;

use super::context::Context;
use super::symbols::shows_inlines;

/// The kernel's maximum size of a stack copy in bytes.
const MAX_STACK_COPY: u32 = 65_528;

/// Whether samples of any event carry data that completes their callchains.
pub(crate) fn can_complete_callchains(events: &[EventDesc]) -> bool {
    events.iter().any(|event| completes_callchains(&event.attr))
}

/// Returns how the user stacks of `recording` are unwound. `limit` is the maximum number of frames ([`StackOptions::limit`]);
/// `None` if nothing is unwound.
pub(crate) fn stack_options(recording: Metadata<'_>, limit: Option<usize>) -> StackOptions {
    let machine = recording.features.arch();
    StackOptions {
        machine: machine
            .unwrap_or_else(|| std::env::consts::ARCH.into())
            .to_string(),
        endian: recording.endian,
        limit,
        // Of more kernel frames than `limit`, the innermost are kept. [`fold`] changes this if graphs begin with callers.
        keeps_outermost: false,
        has_lbr_call_stacks: recording
            .events
            .iter()
            .any(|event| has_lbr_call_stacks(&event.attr)),
    }
}

/// Takes the maximum number of frames (`max_stack`) out of `options` if user stacks are unwound; `None` if they are not, or if
/// callchains are not used. Unwinding applies this limit itself; `options` then has none.
pub(crate) fn take_unwinding_limit(
    recording: Metadata<'_>,
    options: &mut HistogramOptions,
) -> Option<usize> {
    let unwinds = options.reads_chains() && can_complete_callchains(recording.events);
    unwinds.then(|| mem::replace(&mut options.max_stack, usize::MAX))
}

/// The parameters of [`fold`].
pub(crate) struct StackFolding<'f, 'w> {
    pub(crate) naming: &'f NamingContext<'f, 'w>,
    pub(crate) resolver: &'f Resolver<'w>,
    /// The limit of [`take_unwinding_limit`].
    pub(crate) limit: Option<usize>,
    /// Selects the counted samples; `None` for all.
    pub(crate) select: Option<&'f dyn SelectSamples>,
    /// The weights of samples, if these are not their periods.
    pub(crate) weight: Option<&'f dyn WeighSamples>,
    /// The number of threads.
    pub(crate) jobs: NonZeroUsize,
}

/// Gives samples a weight.
pub(crate) trait WeighSamples: Sync {
    /// Returns the weight of a sample, which replaces its period.
    fn weight(&self, sample: &Sample<'_>) -> u64;
}

/// Folds samples with the weights of a [`WeighSamples`], if given, instead of their periods. The [`World`], the processes and
/// mappings at a time, is only passed on.
struct WeightedFold<'f, F> {
    inner: F,
    weight: Option<&'f dyn WeighSamples>,
}

impl<F: Fold> Fold for WeightedFold<'_, F> {
    fn fields(&self) -> SampleType {
        match self.weight {
            None => self.inner.fields(),
            // A weight may depend on any field.
            Some(_) => SampleType::ALL,
        }
    }

    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        match self.weight {
            None => self.inner.sample(world, sample),
            Some(weight) => {
                let period = weight.weight(sample);
                let weighted = Sample {
                    period,
                    ..sample.clone()
                };
                self.inner.sample(world, &weighted);
            }
        }
    }

    fn merge(&mut self, later: Self) {
        self.inner.merge(later.inner);
    }
}

/// Folds samples, and returns them with statistics on the unwound user stacks.
pub(crate) fn fold(
    replay: &Replay<'_>,
    folding: &StackFolding<'_, '_>,
) -> (FoldedSamples, StackSummary) {
    let StackFolding {
        naming,
        resolver,
        limit,
        select,
        weight,
        jobs,
    } = *folding;
    let options = StackOptions {
        keeps_outermost: naming.begins_with_callers(),
        ..stack_options(replay.data().metadata(), limit)
    };
    let stacks = UserStacks::new(resolver, options);
    let fold_samples = || {
        let samples = replay.fold(jobs, || WeightedFold {
            inner: stacks.fold(naming.sample_fold(select)),
            weight,
        });
        // Unwraps the WeightedFold, then the fold that unwinds.
        samples.inner.into_inner().finish(jobs)
    };
    // With a filter, it may be a waste to load the kernel's symbols in advance: the filter may drop all samples of the kernel.
    let needs_kernel = select.is_none() && replay.has_kernel_samples();
    let samples = match jobs.get() > 1 && needs_kernel {
        true => resolver.while_loading_kernel_symbols(fold_samples),
        false => fold_samples(),
    };
    (samples, stacks.summary())
}

/// Returns the properties of a recording for histograms, without event groups, sockets and tracepoint texts. `inlines` is the
/// value of `--inline`.
pub(crate) fn recording_info(
    recording: Metadata<'_>,
    inlines: Option<bool>,
) -> RecordingInfo<'static> {
    let attrs = || recording.events.iter().map(|event| &event.attr);
    RecordingInfo {
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

/// Whether the event's samples have branch stacks.
pub(crate) fn has_branches(event: &EventDesc) -> bool {
    event.attr.sample_type.contains(SampleType::BRANCH_STACK)
}

/// Marks events whose samples have branch stacks as events with callchains: the branches are added to their callchains.
pub(crate) fn mark_branch_chains(source: &mut RecordingInfo<'_>, events: &[EventDesc]) {
    let with_branches = events.iter().map(has_branches);
    let chains = source.callchains.iter_mut().zip(with_branches);
    chains.for_each(|(has_chain, branches)| *has_chain |= branches);
}

/// Returns the size of the stack copies in bytes, the largest of all events; `None` without events.
pub(crate) fn stack_copy_size(events: &[EventDesc]) -> Option<u32> {
    let events = events.iter();
    events.map(|event| event.attr.sample_stack_user).max()
}

/// Warns of stacks that lack frames or were guessed; `copied` is the size of the stack copies in bytes,
/// for the hint to copy more; no hint if `None`.
pub(crate) fn warn_of_truncated(context: &Context, summary: &StackSummary, copied: Option<u32>) {
    let incomplete = summary.truncated_count();
    if incomplete > 0 {
        let causes = summary
            .truncated
            .iter()
            .map(|truncated| match &truncated.object {
                Some(object) => {
                    format!("{} {} (mostly {object})", truncated.stacks, truncated.cause)
                }
                None => format!("{} {}", truncated.stacks, truncated.cause),
            });
        let causes: Vec<String> = causes.collect();
        context.warn(format_args!(
            "{incomplete} of {} user callchains are incomplete: {}",
            summary.stacks,
            causes.join(", ")
        ));
        if !summary.marked {
            context.note("hint: --mark-truncated adds a frame with the reason");
        }
    }
    if summary.is_copied_too_short()
        && let Some(copied) = copied
        && copied < MAX_STACK_COPY
    {
        let wider = copied.saturating_mul(2).min(MAX_STACK_COPY);
        context.note(format_args!(
            "hint: {copied} bytes of each stack were copied; record with --call-graph dwarf,{wider} for more"
        ));
    }
    if summary.guessed > 0 {
        context.note(format_args!(
            "{} of {} user callchains were unwound with frame pointers where unwind information is missing",
            summary.guessed, summary.stacks
        ));
    }
}
