//! A recording that comes through a pipe, delivered while it is being written.
//!
//! ```text
//! ring 0: 1 4 | ring 1: 2 3 | FINISHED_ROUND | ring 0: 6 | ring 1: 5 8 | FINISHED_ROUND
//!                             nothing yet                                  the World up to 4,
//!                                                                          then samples 1 2 3 4
//! ```
//!
//! What waits is what came since the round before last, so memory is bounded by the rounds and by the
//! World, not by the length of the stream.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rperf_memory::push;
use rperf_perfdata::{PipeHead, PipeReader, RecordAt, Source};
use rperf_wire::{Endian, RawRecord, RecordKind};

use crate::deferred::{Deferred, Held, Key};
use crate::diagnostics::Bad;
use crate::events::EventTable;
use crate::render::{Recorded, render_blocks};
use crate::rounds::take_up_to;
use crate::scan::STATE;
use crate::shares::{LastValues, Shares, Values};
use crate::tally::Tally;
use crate::timeline::PLACES;
use crate::{Diagnostics, Error, Order, Render, Rounds, Take, World, WorldBuilder};

/// A recording out of a pipe: [`Stream::advance`] until it says that nothing more comes, and
/// [`Stream::deliver`] in between.
#[derive(Debug)]
pub struct Stream<R> {
    reader: PipeReader<R>,
    builder: WorldBuilder,
    intake: Intake,
    /// Build-ids that the World has.
    named: usize,
    /// Samples that can be delivered, in order.
    ready: Vec<Order>,
    /// What those stand for.
    shares: Shares,
    last_values: LastValues,
    /// Samples that can be delivered but for their callchains, and the callchains of those that are ready.
    held: Held,
    deferred: Deferred,
    bad_samples: Mutex<Bad>,
    ended: bool,
}

/// What is read and waits.
#[derive(Debug)]
struct Intake {
    endian: Endian,
    events: EventTable,
    order: Rounds,
    /// Kinds of records that are delivered beside samples.
    wanted: Vec<RecordKind>,
    /// What will be delivered, in the order of the stream.
    samples: Vec<Order>,
    /// Records that change the World, in the order of the stream.
    state: Vec<Order>,
    /// Callchains that come by themselves, in the order of the stream.
    chains: Vec<(Key, Order)>,
    tally: Tally,
    /// An event came, or a build-id.
    described: bool,
}

/// Samples of a block.
const BLOCK: usize = 1024;
/// Samples that are gathered from short rounds where more of them can be had without waiting.
const GATHERED: usize = 16 * BLOCK;
/// Bytes that may wait for the end of a round. A recorder that ends none gets its records in order only
/// within stretches of this length.
const MOST_WAITING: usize = 256 << 20;

impl<R: Source> Stream<R> {
    /// A stream of which nothing but the header was read.
    #[must_use]
    pub fn new(reader: PipeReader<R>) -> Self {
        let endian = reader.endian();
        let intake = Intake {
            endian,
            events: EventTable::new(endian, &[]),
            order: Rounds::new(),
            wanted: Vec::new(),
            samples: Vec::new(),
            state: Vec::new(),
            chains: Vec::new(),
            tally: Tally::default(),
            described: false,
        };
        Self {
            builder: WorldBuilder::new(endian),
            reader,
            intake,
            named: 0,
            ready: Vec::new(),
            shares: Shares::default(),
            last_values: LastValues::default(),
            held: Held::default(),
            deferred: Deferred::default(),
            bad_samples: Mutex::default(),
            ended: false,
        }
    }

    /// A stream that delivers records of these kinds too: what [`Render::wanted`] will say.
    #[must_use]
    pub fn with_records(mut self, wanted: &[RecordKind]) -> Self {
        self.intake.wanted = wanted.to_vec();
        self
    }

    /// Byte order of the stream.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.reader.endian()
    }

    /// Events and header features that were read so far.
    #[must_use]
    pub fn head(&self) -> &PipeHead<'static> {
        self.reader.head()
    }

    /// Processes and mappings up to the samples that can be delivered.
    #[must_use]
    pub fn world(&self) -> &World {
        self.builder.world()
    }

    /// What was lost, late or broken so far.
    #[must_use]
    pub fn diagnostics(&self) -> Diagnostics {
        let bad_samples = self.bad_samples.lock();
        Diagnostics {
            bad_samples: bad_samples.unwrap_or_else(PoisonError::into_inner).clone(),
            out_of_order: self.intake.order.late(),
            ..self.intake.tally.finish()
        }
    }

    /// Forgets the samples that could be delivered, and reads until others can. `false` at the end of
    /// the stream; a damaged one ends where it is damaged, with [`Diagnostics::end`].
    ///
    /// # Errors
    /// [`Error::Compressed`] for a recording whose records can't be seen.
    pub fn advance(&mut self) -> Result<bool, Error> {
        loop {
            self.forget();
            if self.ended {
                return Ok(false);
            }
            self.read()?;
            self.complete();
            if !self.ready.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Renders the samples that can be delivered, in order of time: many of them on as many workers as
    /// there are scratches, few on the caller's thread. What is kept in the scratches may name what the
    /// World has: it only grows.
    ///
    /// Samples that cannot be decoded are counted in [`Stream::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn deliver<V: Render, T: Take<V::Out>>(
        &self,
        render: &V,
        scratches: &mut [V::Scratch],
        take: &mut T,
    ) {
        let samples = self.ready.iter().map(|order| order.position);
        let base = samples
            .chain(self.deferred.positions())
            .min()
            .unwrap_or_default();
        let batch = Batch {
            world: self.builder.world(),
            events: &self.intake.events,
            bytes: self.reader.from(base),
            base,
            shares: &self.shares,
            deferred: &self.deferred,
            bad: &self.bad_samples,
        };
        let blocks = self.ready.chunks(BLOCK);
        let workers = scratches.len().min(blocks.len()).max(1);
        let scratches = scratches.get_mut(..workers).unwrap_or_default();
        render_blocks(
            &batch,
            blocks.map(<[Order]>::to_vec),
            render,
            scratches,
            take,
        );
    }

    /// Reads until a round has ended and nothing more is to be had without waiting.
    fn read(&mut self) -> Result<(), Error> {
        let mut round_ended = false;
        loop {
            let many = self.intake.samples.len() >= GATHERED;
            if round_ended && (many || !self.reader.is_ready()) {
                return Ok(());
            }
            if self.intake.described {
                self.describe();
            }
            let record = match self.reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.intake.tally.found.end = Some(error);
                    break;
                }
            };
            round_ended |= record.raw.kind == RecordKind::FINISHED_ROUND;
            self.intake.record(&record)?;
            if self.reader.kept() > MOST_WAITING {
                self.intake.order.finish_all();
                return Ok(());
            }
        }
        self.ended = true;
        self.intake.order.finish_all();
        let end = &mut self.intake.tally.found.end;
        if end.is_none() && self.reader.head().events().is_empty() {
            *end = Some(rperf_perfdata::Error::NoAttrRecord);
        }
        Ok(())
    }

    /// Takes in what the stream has told about events and files.
    fn describe(&mut self) {
        let head = self.reader.head();
        self.intake.described = false;
        self.intake.events = EventTable::new(self.intake.endian, head.events());
        let ids = head.features().build_ids();
        self.builder
            .build_ids(ids.get(self.named..).unwrap_or_default());
        self.named = ids.len();
    }

    /// Brings the World up to the flush limit, and makes the samples up to there ready.
    fn complete(&mut self) {
        let limit = self.intake.order.limit();
        let changes = take_up_to(&mut self.intake.state, limit, |order| *order);
        for order in changes {
            let record = RawRecord::split(self.reader.from(order.position), self.intake.endian);
            let Some((raw, _)) = record else { continue };
            if let Err(error) = self.builder.push(order, &raw) {
                let bad = &mut self.intake.tally.found.bad_records;
                bad.add(order.position, error);
            }
        }
        self.ready = take_up_to(&mut self.intake.samples, limit, |order| *order);
        if self.intake.events.defer_callchains() {
            self.complete_callchains(limit);
        }
        if self.intake.events.hold_values() {
            self.share();
        }
    }

    /// Holds back the samples that are ready but for their callchains, and has those go whose callchains came.
    fn complete_callchains(&mut self, limit: u64) {
        let mut chains = take_up_to(&mut self.intake.chains, limit, |(_, order)| *order)
            .into_iter()
            .peekable();
        self.deferred = Deferred::new(true);
        let ready = std::mem::take(&mut self.ready);
        for order in ready {
            while let Some((key, came)) = chains.next_if(|(_, came)| *came < order) {
                self.callchain(key, came);
            }
            match self.waits_for(order) {
                Some(key) => self.held.hold(key, order),
                None => self.ready.push(order),
            }
        }
        for (key, came) in chains {
            self.callchain(key, came);
        }
        if self.ended || self.reader.kept() > MOST_WAITING {
            self.ready.extend(self.held.release_all());
        }
        self.deferred = std::mem::take(&mut self.deferred).sorted();
    }

    /// A callchain came: samples that wait for it take its place.
    fn callchain(&mut self, key: Key, came: Order) {
        for sample in self.held.release(key) {
            self.deferred.add(key, came);
            self.ready.push(Order {
                time: came.time,
                position: sample.position,
            });
        }
    }

    /// What the sample of a place waits for.
    fn waits_for(&self, order: Order) -> Option<Key> {
        let (raw, _) = RawRecord::split(self.reader.from(order.position), self.intake.endian)?;
        if raw.kind != RecordKind::SAMPLE {
            return None;
        }
        Key::of_sample(&self.intake.events.sample(&raw, |_| order).ok()??)
    }

    /// Works out what the samples that are ready stand for.
    fn share(&mut self) {
        let mut ready = self.ready.clone();
        ready.sort_by_key(|order| order.position);
        let events = &self.intake.events;
        let mut values = Values::default();
        for order in ready {
            let record = RawRecord::split(self.reader.from(order.position), self.intake.endian);
            let sample = record.map(|(raw, _)| events.sample(&raw, |_| order));
            // One that cannot be decoded is counted when it is to be delivered.
            if let Some(Ok(Some(sample))) = sample
                && let Some(read) = sample.wire.read
            {
                let unknown = values.add(order, &read, |id| events.exactly(id));
                self.intake.tally.found.unknown_ids += unknown;
            }
        }
        self.shares = values.finish(&mut self.last_values);
    }

    fn forget(&mut self) {
        self.ready.clear();
        let samples = self.intake.samples.iter();
        let waiting = samples.chain(&self.intake.state);
        let waiting = waiting.chain(self.intake.chains.iter().map(|(_, order)| order));
        let waiting = waiting.map(|order| order.position);
        let first = waiting.chain(self.held.positions()).min();
        self.reader.release(first.unwrap_or(u64::MAX));
    }
}

impl Intake {
    fn record(&mut self, at: &RecordAt<'_>) -> Result<(), Error> {
        let (raw, position) = (&at.raw, at.position);
        self.tally.count(raw.kind);
        if self.wanted.contains(&raw.kind) {
            let time = self.events.record_time(raw);
            let limit = self.order.limit();
            let time = time.unwrap_or(limit);
            let order = Order { time, position };
            push(&mut self.samples, order).map_err(Error::no_room(PLACES))?;
        }
        match raw.kind {
            RecordKind::SAMPLE => {
                let Some(glance) = self.events.glance(raw.body) else {
                    self.tally.found.unknown_ids += 1;
                    return Ok(());
                };
                let order = self.order.order(glance.time, position);
                push(&mut self.samples, order).map_err(Error::no_room(PLACES))?;
                return Ok(());
            }
            RecordKind::FINISHED_ROUND => self.order.finish_round(),
            RecordKind::COMPRESSED | RecordKind::COMPRESSED2 => {
                return Err(Error::Compressed { offset: position });
            }
            kind if kind.is_user() => self.described |= PipeHead::wants(kind),
            kind => {
                let order = self.order.order(self.events.record_time(raw), position);
                if WorldBuilder::wants(kind) {
                    push(&mut self.state, order).map_err(Error::no_room(STATE))?;
                } else if matches!(kind, RecordKind::LOST | RecordKind::LOST_SAMPLES) {
                    self.tally.lost(at, self.endian);
                } else if kind == RecordKind::CALLCHAIN_DEFERRED {
                    let key = self.events.waited_for(raw);
                    self.chains.extend(key.map(|key| (key, order)));
                }
            }
        }
        Ok(())
    }
}

/// Samples that can be delivered, for the workers.
struct Batch<'s> {
    world: &'s World,
    events: &'s EventTable,
    /// Bytes of the stream from `base` on.
    bytes: &'s [u8],
    base: u64,
    shares: &'s Shares,
    deferred: &'s Deferred,
    bad: &'s Mutex<Bad>,
}

impl Recorded for Batch<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn from(&self, position: u64) -> &[u8] {
        let offset = usize::try_from(position - self.base).unwrap_or(usize::MAX);
        self.bytes.get(offset..).unwrap_or_default()
    }

    fn events(&self) -> &EventTable {
        self.events
    }

    fn shares(&self) -> &Shares {
        self.shares
    }

    fn deferred(&self) -> &Deferred {
        self.deferred
    }

    fn bad(&self) -> MutexGuard<'_, Bad> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
