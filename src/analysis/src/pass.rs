//! A pass over a recording, or over the content of live ring buffers.

use std::num::NonZeroUsize;

use rperf_replay::{Error, EventIndex, Render as _, Replay};
use rperf_wire::RecordKind;

use crate::block::RecordBlock;
use crate::decoder::Decoder;
use crate::{EventLayouts, Observer, PrepareSamples};

/// Selects the records that an [`Observer`] receives.
#[derive(Debug)]
pub struct ObserverPass<'p, P> {
    layouts: &'p EventLayouts,
    prepare: P,
    kinds: Vec<RecordKind>,
    /// The selected tracepoints; `None` for all samples.
    needed: Option<Vec<&'static str>>,
    /// Other events that are selected, too.
    others: Vec<EventIndex>,
}

/// Counts of the records that were delivered to an observer or skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveredCounts {
    /// Typed events.
    pub events: u64,
    /// Samples of other events.
    pub samples: u64,
    /// Samples of typed events that were skipped because their raw data are truncated.
    pub truncated: u64,
    /// Records lost while recording.
    pub lost: u64,
    /// Whether ids of mappings are different from now on: live data were forgotten.
    pub has_new_mapping_ids: bool,
}

impl<'p, P: PrepareSamples> ObserverPass<'p, P> {
    /// Selects samples by `prepare`, and losses.
    #[must_use]
    pub fn new(layouts: &'p EventLayouts, prepare: P) -> Self {
        Self {
            layouts,
            prepare,
            kinds: vec![RecordKind::LOST, RecordKind::LOST_SAMPLES],
            needed: None,
            others: Vec::new(),
        }
    }

    /// Skips samples of all events other than these tracepoints (`system:name`). They are still delivered if the recording has losses,
    /// and from live ring buffers.
    #[must_use]
    pub fn reading(mut self, tracepoints: &[&[&'static str]]) -> Self {
        self.needed = Some(tracepoints.concat());
        self
    }

    /// Also reads samples of this event, which [`ObserverPass::reading`] would skip.
    #[must_use]
    pub fn reading_event(mut self, event: EventIndex) -> Self {
        self.others.push(event);
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

    /// Feeds `observer` with a recording: decoded on `threads`, observed on the calling thread.
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
            decoder.record(replay.world(), &record, &mut (), &mut block);
        }
        block.deliver(self.layouts, observer, &mut delivered);
        delivered
    }

    fn decoder(&self, replay: &Replay<'_>) -> Decoder<'_, 'p, P> {
        let diagnostics = replay.diagnostics();
        Decoder {
            pass: self,
            with_loss_totals: diagnostics.lost_chunks == 0,
            // A loss is located between the last event before it and its record: any event narrows that stretch.
            reads_all: diagnostics.lost_chunks > 0 || diagnostics.lost_samples > 0,
        }
    }

    pub(crate) fn layouts(&self) -> &EventLayouts {
        self.layouts
    }

    /// Returns the preparation of samples.
    pub fn prepare(&self) -> &P {
        &self.prepare
    }

    /// Whether samples of an event are selected.
    pub(crate) fn reads(&self, event: EventIndex) -> bool {
        let layout = self.layouts.of(event);
        let is_needed = self.needed.as_ref().is_none_or(|needed| {
            layout.is_some_and(|layout| needed.contains(&layout.tracepoint()))
        });
        is_needed || self.others.contains(&event)
    }

    pub(crate) fn kinds(&self) -> &[RecordKind] {
        &self.kinds
    }
}
