//! Live analysis: records as they are read from ring buffers.

use rperf_replay::{FoldControl, LiveWorld, Order, Render as _, World};
use rperf_wire::{RawRecord, RecordKind};

use crate::block::RecordBlock;
use crate::decoder::Decoder;
use crate::{DeliveredCounts, Observer, ObserverPass, PrepareSamples};

/// Feeds an [`Observer`] from live ring buffers, one round late: the next round may have records that precede those of this
/// round.
///
/// ```text
/// add_records:  round 1 | round 2 | round 3 ...
/// deliver:                round 1 | round 2 ...    in time order, over all ring buffers
/// ```
#[derive(Debug)]
pub struct LiveFeed {
    live_world: LiveWorld,
    /// Pending records, in the order in which they were added.
    bytes: Vec<u8>,
    /// The position of the first byte of `bytes` in all records that were added so far.
    base: u64,
    /// Times and positions of the pending records.
    waiting: Vec<Order>,
}

/// The maximum number of records that are decoded before they are observed.
const BLOCK: usize = 1024;

impl LiveFeed {
    /// Creates an empty feed for the events of `live_world`.
    #[must_use]
    pub fn new(live_world: LiveWorld) -> Self {
        Self {
            live_world,
            bytes: Vec::new(),
            base: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds complete records of the current round.
    pub fn add_records(&mut self, records: &[u8]) {
        let waiting = &mut self.waiting;
        self.live_world.add_each(records, |order, raw| {
            if raw.kind != RecordKind::FINISHED_ROUND {
                waiting.push(order);
            }
        });
        self.bytes.extend_from_slice(records);
    }

    /// Ends the round, in which each ring buffer was drained once.
    pub fn end_round(&mut self) {
        self.live_world.end_round();
    }

    /// Ends the input: all records are complete.
    pub fn finish(&mut self) {
        self.live_world.apply_all();
    }

    /// Returns the processes and mappings of the complete rounds. Ids of mappings and names may change from one
    /// [`LiveFeed::deliver`] to the next: observers must not keep them.
    #[must_use]
    pub fn world(&self) -> &World {
        self.live_world.world()
    }

    /// Passes the selected records of complete rounds to `observer`, and forgets all records of these rounds, even if the
    /// observer stops before it has received them. Undecodable records are skipped.
    pub fn deliver<P: PrepareSamples, O: Observer<P::Detail>>(
        &mut self,
        pass: &ObserverPass<'_, P>,
        observer: &mut O,
    ) -> DeliveredCounts {
        let mut delivered = DeliveredCounts::default();
        // All are applied before the first is decoded: the World keeps the mappings of earlier times, so each record still gets
        // those of its own time.
        self.live_world.apply_complete();
        self.waiting.sort_unstable();
        // Records up to this time are complete.
        let limit = self.live_world.limit();
        let complete_count = self.waiting.partition_point(|order| order.time <= limit);
        let mut block = RecordBlock::default();
        for orders in self
            .waiting
            .get(..complete_count)
            .unwrap_or_default()
            .chunks(BLOCK)
        {
            for order in orders {
                self.decode(*order, pass, &mut block);
            }
            if block.deliver(pass.layouts(), observer, &mut delivered) == FoldControl::Stop {
                break;
            }
            block.clear();
        }
        self.waiting.drain(..complete_count);
        self.release();
        // Whether forget() has pruned the live World (the processes and mappings), which changes the ids.
        delivered.invalidates_mapping_ids = self.live_world.forget();
        delivered
    }

    /// Decodes the record with this time and position, and adds it to `to` if its kind is selected. A sample is added if the
    /// pass's preparation accepts it, or if its raw data are truncated.
    fn decode<P: PrepareSamples>(
        &self,
        order: Order,
        pass: &ObserverPass<'_, P>,
        to: &mut RecordBlock<P::Detail>,
    ) {
        let offset = order.position.checked_sub(self.base);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        let bytes = offset.and_then(|offset| self.bytes.get(offset..));
        let endian = self.live_world.endian();
        let Some((raw, _)) = bytes.and_then(|bytes| RawRecord::split(bytes, endian)) else {
            return;
        };
        let world = self.live_world.world();
        // A recording may end with LOST_SAMPLES totals, which repeat the losses of its LOST records. Ring buffers have no such
        // totals, so none are dropped. Samples of all events are decoded: a loss is known to have occurred after the last sample
        // before the record that reports it.
        let decoder = Decoder {
            pass,
            with_loss_totals: true,
            reads_all: true,
        };
        // `()`: a Decoder has no scratch data.
        if raw.kind != RecordKind::SAMPLE {
            if pass.kinds().contains(&raw.kind) {
                let record = self.live_world.non_sample(raw, order);
                decoder.record(world, &record, &mut (), to);
            }
        } else if let Ok(Some(sample)) = self.live_world.sample_at(&raw, order) {
            decoder.render(world, &sample, &mut (), to);
        }
    }

    /// Frees the memory of delivered records.
    fn release(&mut self) {
        let first = self.waiting.iter().map(|order| order.position).min();
        let size = first.map_or(self.bytes.len(), |first| {
            usize::try_from(first.saturating_sub(self.base)).unwrap_or(usize::MAX)
        });
        let size = size.min(self.bytes.len());
        self.bytes.drain(..size);
        self.base += size as u64;
    }
}
