//! A pass over a recording, or over the content of live ring buffers.

use std::num::NonZeroUsize;

use rperf_replay::{Error, EventIndex, Render as _, Replay};
use rperf_wire::RecordKind;

use crate::block::RecordBlock;
use crate::decoder::Decoder;
use crate::{EventLayouts, Observer, PrepareSamples};

/// Selects the records that an [`Observer`] receives, and feeds it with those of a recording.
#[derive(Debug)]
pub struct ObserverPass<'p, P> {
    layouts: &'p EventLayouts,
    prepare: P,
    kinds: Vec<RecordKind>,
    /// The selected tracepoints; `None` for all samples.
    needed: Option<Vec<&'static str>>,
    /// Events that are selected in addition to `needed`.
    also_needed: Vec<EventIndex>,
}

/// The result of a pass, or of one [`LiveFeed::deliver`](crate::LiveFeed::deliver): counts of delivered samples, of lost
/// records and of skipped samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveredCounts {
    /// Delivered samples of typed events.
    pub typed_events: u64,
    /// Delivered samples of other events.
    pub other_samples: u64,
    /// Samples of typed events that were skipped because their raw data are truncated or missing.
    pub truncated: u64,
    /// Records that were lost while recording, according to the delivered losses.
    pub lost: u64,
    /// Whether earlier ids of mappings are invalid from now on, because old data of a live analysis were dropped; `false` for a
    /// recording.
    pub invalidates_mapping_ids: bool,
}

impl<'p, P: PrepareSamples> ObserverPass<'p, P> {
    /// Creates a pass that selects the samples that `prepare` accepts, and records of losses.
    #[must_use]
    pub fn new(layouts: &'p EventLayouts, prepare: P) -> Self {
        Self {
            layouts,
            prepare,
            kinds: vec![RecordKind::LOST, RecordKind::LOST_SAMPLES],
            needed: None,
            also_needed: Vec::new(),
        }
    }

    /// Skips samples of all events other than these tracepoints (`system:name`). It is an optimization only, so the observer must
    /// ignore other events: they are still delivered if the recording has losses or group samples (`:S`), and from live ring
    /// buffers.
    #[must_use]
    pub fn reading(mut self, tracepoints: &[&[&'static str]]) -> Self {
        self.needed = Some(tracepoints.concat());
        self
    }

    /// Also selects samples of this event, which [`ObserverPass::reading`] would skip.
    #[must_use]
    pub fn reading_event(mut self, event: EventIndex) -> Self {
        self.also_needed.push(event);
        self
    }

    /// Also selects task creation, exit and renames.
    #[must_use]
    pub fn with_tasks(mut self) -> Self {
        let kinds = [RecordKind::FORK, RecordKind::EXIT, RecordKind::COMM];
        self.kinds.extend(kinds);
        self
    }

    /// Also selects context switch records (`record --switch-events`).
    #[must_use]
    pub fn with_switches(mut self) -> Self {
        let kinds = [RecordKind::SWITCH, RecordKind::SWITCH_CPU_WIDE];
        self.kinds.extend(kinds);
        self
    }

    /// Feeds `observer` with a recording: `threads` threads decode it, the calling thread runs the observer.
    ///
    /// # Errors
    /// Those of [`Replay::ordered`].
    pub fn run<O: Observer<P::Detail>>(
        &self,
        replay: &Replay<'_>,
        threads: NonZeroUsize,
        observer: &mut O,
    ) -> Result<DeliveredCounts, Error> {
        let mut delivered = DeliveredCounts::default();
        replay.ordered(
            threads,
            &self.decoder(replay),
            &mut |block: &mut RecordBlock<P::Detail>| {
                block.deliver(self.layouts, observer, &mut delivered)
            },
        )?;
        Ok(delivered)
    }

    /// Feeds `observer` with the selected non-sample records only.
    pub fn run_without_samples<O: Observer<P::Detail>>(
        &self,
        replay: &Replay<'_>,
        observer: &mut O,
    ) -> DeliveredCounts {
        let mut delivered = DeliveredCounts::default();
        let (decoder, mut block) = (self.decoder(replay), RecordBlock::default());
        for record in replay.non_samples(&self.kinds) {
            // `&mut ()`: the decoder keeps no state between records.
            decoder.record(replay.world(), &record, &mut (), &mut block);
        }
        block.deliver(self.layouts, observer, &mut delivered);
        delivered
    }

    fn decoder(&self, replay: &Replay<'_>) -> Decoder<'_, 'p, P> {
        let diagnostics = replay.diagnostics();
        Decoder {
            pass: self,
            // `lost_chunks` is the number of LOST records. They report the same losses as the LOST_SAMPLES totals at the end of
            // the recording, but with times.
            with_loss_totals: diagnostics.lost_chunks == 0,
            // Events that are not selected are needed, too: a loss is only known to lie between the record that reports it and
            // the event before this record. The more events are known, the shorter this interval is.
            reads_all: diagnostics.lost_chunks > 0 || diagnostics.lost_samples > 0,
        }
    }

    pub(crate) fn layouts(&self) -> &EventLayouts {
        self.layouts
    }

    /// Returns the preparation of samples.
    pub fn preparation(&self) -> &P {
        &self.prepare
    }

    /// Whether samples of an event are selected.
    pub(crate) fn reads(&self, event: EventIndex) -> bool {
        let layout = self.layouts.of(event);
        let is_needed = self.needed.as_ref().is_none_or(|needed| {
            layout.is_some_and(|layout| needed.contains(&layout.tracepoint()))
        });
        is_needed || self.also_needed.contains(&event)
    }

    /// Returns the types of the selected records other than samples.
    pub(crate) fn kinds(&self) -> &[RecordKind] {
        &self.kinds
    }
}
