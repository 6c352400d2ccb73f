//! Processing of a recording from a pipe while it is being written.
//!
//! ```text
//! ring 0: 1 4 | ring 1: 2 3 | FINISHED_ROUND | ring 0: 6 | ring 1: 5 8 | FINISHED_ROUND
//!                             nothing yet                                  World up to 4,
//!                                                                          then samples 1 2 3 4
//! ```
//!
//! Only the records of the last finished round and of the current one are buffered, so memory usage depends on the size of
//! rounds and of the World (the processes and mappings at a time), not on the length of the stream.

use std::sync::{Mutex, MutexGuard};

use rperf_memory::push;
use rperf_perfdata::{PipeHead, PipeReader, RecordAt, StreamInput};
use rperf_wire::{Endian, RawRecord, RecordKind};

use crate::deferred::{DeferredCallchains, DeferredKey, WaitingSamples};
use crate::diagnostics::DecodeErrors;
use crate::events::EventTable;
use crate::group_samples::{GroupCounts, GroupSamples, LastValues};
use crate::record_counter::RecordCounter;
use crate::render::{OrderedSamples, render_blocks};
use crate::rounds::take_up_to;
use crate::scan::WORLD_CHANGES;
use crate::threads::locked;
use crate::timeline::SAMPLE_INDEX;
use crate::{BadRecord, Diagnostics, Error, Order, Render, Rounds, Take, World, WorldBuilder};

/// A recording from a pipe: call [`Stream::advance`] until it returns `false`, and [`Stream::deliver`] after each `true`.
#[derive(Debug)]
pub struct Stream<R> {
    reader: PipeReader<R>,
    builder: WorldBuilder,
    buffer: RecordBuffer,
    /// Number of build-ids passed to the World.
    passed_build_ids: usize,
    /// Samples and records of `delivered_kinds` ready for delivery, in order. Samples released without their deferred
    /// callchains come last.
    ready: Vec<Order>,
    /// What each member of a group gets of the ready samples of its leader (`:S`): the increase of its counter.
    shares: GroupSamples,
    /// The last values of these counters, from which the next increases are computed.
    last_values: LastValues,
    /// Samples that wait for deferred callchains.
    held: WaitingSamples,
    /// Deferred callchains of the ready samples.
    deferred: DeferredCallchains,
    bad_samples: Mutex<DecodeErrors>,
    ended: bool,
}

/// Records that were read and are buffered.
#[derive(Debug)]
struct RecordBuffer {
    endian: Endian,
    events: EventTable,
    order: Rounds,
    /// Types of records delivered besides samples.
    delivered_kinds: Vec<RecordKind>,
    /// Samples and records of `delivered_kinds` that are not ready yet.
    undelivered: Vec<Order>,
    /// Records that change the World and have not been applied yet.
    unapplied: Vec<Order>,
    /// CALLCHAIN_DEFERRED records that have not been assigned to samples yet.
    chains: Vec<(DeferredKey, Order)>,
    tally: RecordCounter,
    /// Positions of the records of [`STAT_RECORD_KINDS`], counts and others, that the last [`Stream::advance`] read.
    counts: Vec<u64>,
    /// Whether metadata was read since the last [`Stream::process_metadata`].
    metadata_read: bool,
}

/// The record kinds of `stat record`: the counts, which it writes instead of samples, and the records that describe them.
pub const STAT_RECORD_KINDS: [RecordKind; 6] = [
    RecordKind::CPU_MAP,
    RecordKind::STAT_CONFIG,
    RecordKind::EVENT_UPDATE,
    RecordKind::STAT,
    RecordKind::STAT_ROUND,
    RecordKind::THREAD_MAP,
];

/// Maximum number of samples in a block.
const BLOCK: usize = 1024;
/// Number of samples collected from short rounds while more input is available.
const BATCH_SAMPLES: usize = 16 * BLOCK;
/// Maximum number of bytes buffered until the end of a round. Without FINISHED_ROUND records,
/// records are only sorted within ranges of this size.
const MAX_BUFFERED: usize = 256 << 20;

impl<R: StreamInput> Stream<R> {
    /// Creates a stream; only the header has been read.
    #[must_use]
    pub fn new(reader: PipeReader<R>) -> Self {
        let endian = reader.endian();
        let buffer = RecordBuffer {
            endian,
            events: EventTable::new(endian, &[]),
            order: Rounds::new(),
            delivered_kinds: Vec::new(),
            undelivered: Vec::new(),
            unapplied: Vec::new(),
            chains: Vec::new(),
            tally: RecordCounter::default(),
            counts: Vec::new(),
            metadata_read: false,
        };
        Self {
            builder: WorldBuilder::new(endian),
            reader,
            buffer,
            passed_build_ids: 0,
            ready: Vec::new(),
            shares: GroupSamples::default(),
            last_values: LastValues::default(),
            held: WaitingSamples::default(),
            deferred: DeferredCallchains::default(),
            bad_samples: Mutex::default(),
            ended: false,
        }
    }

    /// Also delivers records of these types, which must be those of [`Render::wanted`].
    #[must_use]
    pub fn with_records(mut self, wanted: &[RecordKind]) -> Self {
        self.buffer.delivered_kinds = wanted.to_vec();
        self
    }

    /// Byte order of the stream.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.reader.endian()
    }

    /// Events and header features read so far.
    #[must_use]
    pub fn head(&self) -> &PipeHead<'static> {
        self.reader.head()
    }

    /// Processes and mappings up to the samples ready for delivery.
    #[must_use]
    pub fn world(&self) -> &World {
        self.builder.world()
    }

    /// Lost, late and damaged records so far.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        Diagnostics {
            bad_samples: locked(&self.bad_samples).clone(),
            out_of_order: self.buffer.events.out_of_order(&self.buffer.order),
            ..self.buffer.tally.finish()
        }
    }

    /// Records of the types [`STAT_RECORD_KINDS`] that the last call of [`Stream::advance`] read, in stream order, each with its
    /// position.
    pub fn stat_records(&self) -> impl Iterator<Item = (u64, RawRecord<'_>)> {
        self.buffer.counts.iter().filter_map(|position| {
            let split = RawRecord::split(self.reader.bytes_from(*position), self.buffer.endian);
            split.map(|(raw, _)| (*position, raw))
        })
    }

    /// Drops the ready samples, and reads until further samples, other records to deliver, or records for
    /// [`Stream::stat_records`] are ready. Returns `false` at the end of the stream; a damaged stream ends at the damage, which
    /// [`Diagnostics::end`] then describes.
    ///
    /// # Errors
    /// [`Error::Compressed`] for a recording with compressed records, and [`Error::OutOfMemory`].
    pub fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.forget();
            if self.ended {
                return Ok(false);
            }
            self.read()?;
            self.complete();
            if !self.ready.is_empty() || !self.buffer.counts.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Renders the ready samples in order of time, with at most one worker for each scratch; without a scratch, nothing is
    /// rendered. Scratches may keep ids of the World, which only grows.
    ///
    /// At the end of the stream, or if too much is buffered, samples whose deferred callchains are missing come last.
    ///
    /// Samples that cannot be decoded are counted in [`Stream::diagnostics`].
    ///
    /// # Panics
    /// If a worker panics: the panic of the first such worker continues in the caller.
    pub fn deliver<V: Render, T: Take<V::Out>>(
        &self,
        render: &V,
        scratches: &mut [V::Scratch],
        take: &mut T,
    ) {
        let positions = self.ready.iter().map(|order| order.position);
        let base = positions
            .chain(self.deferred.positions())
            .min()
            .unwrap_or_default();
        let batch = SampleBatch {
            world: self.builder.world(),
            events: &self.buffer.events,
            bytes: self.reader.bytes_from(base),
            base,
            shares: &self.shares,
            deferred: &self.deferred,
            bad: &self.bad_samples,
        };
        let blocks = self.ready.chunks(BLOCK);
        let workers = scratches.len().min(blocks.len()).max(1);
        // Without a scratch, the range is out of bounds, and the default is an empty slice.
        let scratches = scratches.get_mut(..workers).unwrap_or_default();
        render_blocks(
            &batch,
            blocks.map(<[Order]>::to_vec),
            render,
            scratches,
            take,
        );
    }

    /// Reads until a round has ended, and continues while more input is available without waiting and fewer than
    /// [`BATCH_SAMPLES`] are collected. Also stops if too much is buffered, and at the end of the stream.
    fn read(&mut self) -> Result<(), Error> {
        let mut round_ended = false;
        loop {
            let many = self.buffer.undelivered.len() >= BATCH_SAMPLES;
            if round_ended && (many || !self.reader.is_ready()) {
                return Ok(());
            }
            if self.buffer.metadata_read {
                self.process_metadata();
            }
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.buffer.tally.statistics.end = Some(error);
                    break;
                }
            };
            // In recordings of `stat record`, a STAT_ROUND record follows the counts of each interval and of the whole run.
            round_ended |= matches!(
                record.raw.kind,
                RecordKind::FINISHED_ROUND | RecordKind::STAT_ROUND
            );
            self.buffer.record(&record)?;
            if self.reader.buffered() > MAX_BUFFERED {
                self.buffer.order.finish_all();
                return Ok(());
            }
        }
        self.ended = true;
        self.buffer.order.finish_all();
        let end = &mut self.buffer.tally.statistics.end;
        if end.is_none() && self.reader.head().events().is_empty() {
            *end = Some(rperf_perfdata::Error::NoAttrRecord);
        }
        Ok(())
    }

    /// Processes new events and build-ids.
    fn process_metadata(&mut self) {
        let head = self.reader.head();
        self.buffer.metadata_read = false;
        self.buffer.events = EventTable::new(self.buffer.endian, head.events());
        let ids = head.features().build_ids();
        self.builder
            .add_build_ids(ids.get(self.passed_build_ids..).unwrap_or_default());
        self.passed_build_ids = ids.len();
    }

    /// Applies records to the World up to the flush limit (the time up to which all rings have been read, see
    /// [`Rounds`]), and makes the samples and other records up to this limit ready for delivery.
    fn complete(&mut self) {
        let limit = self.buffer.order.limit();
        let changes = take_up_to(&mut self.buffer.unapplied, limit, |order| *order);
        for order in changes {
            let record =
                RawRecord::split(self.reader.bytes_from(order.position), self.buffer.endian);
            let Some((raw, _)) = record else { continue };
            if let Err(error) = self.builder.push(order, &raw) {
                let bad = &mut self.buffer.tally.statistics.bad_records;
                bad.add(BadRecord {
                    offset: order.position,
                    kind: raw.kind,
                    error,
                });
            }
        }
        self.ready = take_up_to(&mut self.buffer.undelivered, limit, |order| *order);
        if self.buffer.events.may_defer_callchains() {
            self.complete_callchains(limit);
        }
        if self.buffer.events.any_holds_values() {
            self.compute_shares();
        }
    }

    /// Holds back samples whose deferred callchains are missing, and makes those ready whose callchains arrived. At the end of
    /// the stream, or if too much is buffered, all remaining ones become ready, after the others.
    fn complete_callchains(&mut self, limit: u64) {
        let mut chains = take_up_to(&mut self.buffer.chains, limit, |(_, order)| *order)
            .into_iter()
            .peekable();
        // The caller has checked that samples may have deferred callchains.
        let awaited = true;
        self.deferred = DeferredCallchains::new(awaited);
        let ready = std::mem::take(&mut self.ready);
        for order in ready {
            while let Some((key, arrival)) = chains.next_if(|(_, arrival)| *arrival < order) {
                self.release_samples(key, arrival);
            }
            match self.waits_for(order) {
                Some(key) => self.held.add(key, order),
                None => self.ready.push(order),
            }
        }
        for (key, arrival) in chains {
            self.release_samples(key, arrival);
        }
        if self.ended || self.reader.buffered() > MAX_BUFFERED {
            self.ready.extend(self.held.release_all());
        }
        self.deferred = std::mem::take(&mut self.deferred).sorted();
    }

    /// Makes the samples ready that waited for a deferred callchain. They get the time of `arrival`, the place of the
    /// CALLCHAIN_DEFERRED record in the order, instead of their own.
    fn release_samples(&mut self, key: DeferredKey, arrival: Order) {
        for sample in self.held.release(key) {
            self.deferred.add(key, arrival);
            self.ready.push(Order {
                time: arrival.time,
                position: sample.position,
            });
        }
    }

    /// The key of the deferred callchain that a record waits for; `None` for a sample with a complete callchain or none, a sample
    /// that cannot be decoded, and other records.
    fn waits_for(&self, order: Order) -> Option<DeferredKey> {
        let (raw, _) =
            RawRecord::split(self.reader.bytes_from(order.position), self.buffer.endian)?;
        if raw.kind != RecordKind::SAMPLE {
            return None;
        }
        DeferredKey::of_sample(&self.buffer.events.sample(&raw, |_| order).ok()??)
    }

    /// Computes [`Self::shares`] of the ready samples.
    fn compute_shares(&mut self) {
        let mut ready = self.ready.clone();
        // `GroupSamples` looks samples up by ascending position.
        ready.sort_by_key(|order| order.position);
        let events = &self.buffer.events;
        let mut values = GroupCounts::default();
        for order in ready {
            let record =
                RawRecord::split(self.reader.bytes_from(order.position), self.buffer.endian);
            let sample_record = record.filter(|(raw, _)| raw.kind == RecordKind::SAMPLE);
            let sample = sample_record.map(|(raw, _)| events.sample(&raw, |_| order));
            // Samples that cannot be decoded are counted on delivery.
            if let Some(Ok(Some(sample))) = sample
                && let Some(read) = sample.wire.read
            {
                let unknown = values.add(order, &read, |id| events.exactly(id));
                self.buffer.tally.statistics.unknown_ids += unknown;
            }
        }
        self.shares = values.finish(&mut self.last_values);
    }

    /// Drops the ready samples and [`RecordBuffer::counts`], and the bytes before the first record that is still needed.
    fn forget(&mut self) {
        self.ready.clear();
        self.buffer.counts.clear();
        let chains = self.buffer.chains.iter().map(|(_, order)| order);
        let undelivered = self.buffer.undelivered.iter();
        let needed = undelivered.chain(&self.buffer.unapplied).chain(chains);
        let positions = needed.map(|order| order.position);
        let first = positions.chain(self.held.positions()).min();
        // `u64::MAX`: all bytes of the records read so far.
        self.reader.release(first.unwrap_or(u64::MAX));
    }
}

impl RecordBuffer {
    /// Counts a record, and keeps its position if it is needed later.
    fn record(&mut self, at: &RecordAt<'_>) -> Result<(), Error> {
        let (raw, position) = (&at.raw, at.position);
        self.tally.count(raw.kind);
        if STAT_RECORD_KINDS.contains(&raw.kind) {
            // The argument is the name in the error message; counts take the place of samples here.
            push(&mut self.counts, position).map_err(Error::no_room(SAMPLE_INDEX))?;
        }
        if self.delivered_kinds.contains(&raw.kind) {
            // The place in the order is not computed by `Rounds::add_record`: kernel records are passed to it below, and a
            // second call would count a late record twice; user records are never counted as late. As in `add_record`, the time
            // of a record without one is the limit, so it is delivered with what is complete next.
            let time = self.events.record_time(raw);
            let limit = self.order.limit();
            let time = time.unwrap_or(limit);
            let order = Order { time, position };
            push(&mut self.undelivered, order).map_err(Error::no_room(SAMPLE_INDEX))?;
        }
        match raw.kind {
            RecordKind::SAMPLE => {
                let Some(head) = self.events.sample_head(raw.body) else {
                    self.tally.statistics.unknown_ids += 1;
                    return Ok(());
                };
                let order = self.order.add_record(head.time, position);
                push(&mut self.undelivered, order).map_err(Error::no_room(SAMPLE_INDEX))?;
                return Ok(());
            }
            RecordKind::FINISHED_ROUND => self.order.finish_round(),
            RecordKind::COMPRESSED | RecordKind::COMPRESSED2 => {
                return Err(Error::Compressed { offset: position });
            }
            kind if kind.is_user() => self.metadata_read |= PipeHead::is_metadata(kind),
            kind => {
                let order = self
                    .order
                    .add_record(self.events.record_time(raw), position);
                if WorldBuilder::changes_world(kind) {
                    push(&mut self.unapplied, order).map_err(Error::no_room(WORLD_CHANGES))?;
                } else {
                    self.tally.check_kernel_record(at, self.endian);
                }
                if kind == RecordKind::CALLCHAIN_DEFERRED {
                    let key = self.events.deferred_key(raw);
                    self.chains.extend(key.map(|key| (key, order)));
                }
            }
        }
        Ok(())
    }
}

/// Ready samples, for the workers.
struct SampleBatch<'s> {
    world: &'s World,
    events: &'s EventTable,
    /// Bytes of the stream from `base` on.
    bytes: &'s [u8],
    /// The lowest position of a record of the batch; records with deferred callchains are included.
    base: u64,
    shares: &'s GroupSamples,
    deferred: &'s DeferredCallchains,
    bad: &'s Mutex<DecodeErrors>,
}

impl OrderedSamples for SampleBatch<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn bytes_from(&self, position: u64) -> &[u8] {
        let offset = usize::try_from(position - self.base).unwrap_or(usize::MAX);
        self.bytes.get(offset..).unwrap_or_default()
    }

    fn events(&self) -> &EventTable {
        self.events
    }

    fn group_samples(&self) -> &GroupSamples {
        self.shares
    }

    fn deferred(&self) -> &DeferredCallchains {
        self.deferred
    }

    fn bad_samples(&self) -> MutexGuard<'_, DecodeErrors> {
        locked(self.bad)
    }
}
