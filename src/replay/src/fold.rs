//! Unordered processing of samples on several threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use rperf_perfdata::Records;
use rperf_wire::{Endian, SampleType};

use crate::diagnostics::DecodeErrors;
use crate::events::EventTable;
use crate::prefetch::Prefetcher;
use crate::scan::DataSlice;
use crate::threads::on_threads;
use crate::{BadRecord, Fold, Order, Replay, Sample};

impl<'a> Replay<'a> {
    /// Folds all samples. At most `threads` ranges of the file (shards) are folded into one `A` each and
    /// merged in file order, so that the result depends neither on timing nor on the number of
    /// threads. `make` creates an empty `A`. Samples that cannot be decoded are counted in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn fold<A: Fold, M: Fn() -> A + Sync>(&self, threads: NonZeroUsize, make: M) -> A {
        *self.bad_samples() = DecodeErrors::default();
        let shards = shards(&self.scan.slices, threads);
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut folded = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(shard) = shards.get(index) else {
                    return folded;
                };
                folded.push((index, self.fold_shard(shard, &make)));
            }
        };
        let by_worker = on_threads(shards.len(), worker);
        let mut folded: Vec<(usize, A)> = by_worker.into_iter().flatten().collect();
        folded.sort_unstable_by_key(|(index, _)| *index);
        let mut parts = folded.into_iter().map(|(_, part)| part);
        let mut merged = parts.next().unwrap_or_else(&make);
        parts.for_each(|part| merged.merge(part));
        merged
    }

    fn fold_shard<A: Fold>(&self, slices: &[DataSlice], make: &impl Fn() -> A) -> A {
        let folded = make();
        let mut fields = folded.fields();
        // Only the callchain of a sample tells whether its user part was deferred.
        if self.scan.deferred.are_awaited() {
            fields |= SampleType::CALLCHAIN;
        }
        let mut shard = ShardFold {
            replay: self,
            events: &self.events.reading(fields),
            folded,
            bad: DecodeErrors::default(),
            sample: Sample::default(),
            may_derive: self.scan.shares.any() || self.scan.deferred.are_awaited(),
        };
        for slice in slices {
            // One copy of the loop for each byte order.
            match self.endian() {
                Endian::Little => shard.fold(slice, Endian::Little),
                Endian::Big => shard.fold(slice, Endian::Big),
            }
        }
        self.bad_samples().merge(shard.bad);
        shard.folded
    }
}

/// The fold of a shard, which is a range of the file.
struct ShardFold<'r, 'a, A> {
    replay: &'r Replay<'a>,
    /// The events; only those fields of their samples are decoded that `folded` reads.
    events: &'r EventTable,
    folded: A,
    bad: DecodeErrors,
    /// The last sample; its memory is reused for the next.
    sample: Sample<'a>,
    /// Whether other samples may be derived from the recorded ones: with `:S`, one for each event of a group, or with deferred
    /// callchains inserted.
    may_derive: bool,
}

impl<A: Fold> ShardFold<'_, '_, A> {
    /// Folds the samples of a slice. The slice has no damage: damage that ended pass 1, the scan of all record headers, is after
    /// the last slice.
    #[inline(always)]
    fn fold(&mut self, slice: &DataSlice, endian: Endian) {
        let replay = self.replay;
        let bytes = replay.bytes_of(slice);
        let mut records = Records::new(bytes, slice.start, endian);
        let mut prefetcher = Prefetcher::new(bytes, slice.start, &replay.walked);
        loop {
            let Some(record) = records.next_sample() else {
                match records.next_valid() {
                    // A record other than a sample is skipped.
                    Some(_) => continue,
                    None => return,
                }
            };
            let position = record.position;
            prefetcher.advance(records.position());
            let order = |time: Option<u64>| Order {
                // Without a time: the time up to which perf would have delivered records here.
                time: time.unwrap_or_else(|| replay.limit(position)),
                position,
            };
            let sample = &mut self.sample;
            match self.events.sample_into(&record.raw, endian, order, sample) {
                Ok(true) if !self.may_derive => self.folded.sample(replay.world(), sample),
                Ok(true) => {
                    replay.deliver(&self.sample, |sample| {
                        self.folded.sample(replay.world(), sample);
                    });
                }
                // The event is unknown; pass 1 has counted it.
                Ok(false) => {}
                Err(error) => self.bad.add(BadRecord {
                    offset: position,
                    kind: record.raw.kind,
                    error,
                }),
            }
        }
    }
}

/// Splits the slices in file order into at most `threads` shards with about equally many sample bytes.
fn shards(slices: &[DataSlice], threads: NonZeroUsize) -> Vec<&[DataSlice]> {
    let total: u128 = slices.iter().map(|slice| u128::from(slice.weight)).sum();
    let threads = threads.get() as u128;
    let mut done = 0;
    let mut shard_of = |slice: &DataSlice| {
        let index = (done * threads).checked_div(total).unwrap_or(0);
        // Slices without samples after the last sample belong to the last shard.
        let index = index.min(threads - 1);
        done += u128::from(slice.weight);
        index
    };
    let indexes: Vec<u128> = slices.iter().map(&mut shard_of).collect();
    let mut shards = Vec::new();
    let mut rest = slices;
    for group in indexes.chunk_by(|a, b| a == b) {
        let (shard, after) = rest.split_at(group.len());
        shards.push(shard);
        rest = after;
    }
    shards
}
