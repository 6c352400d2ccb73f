//! Pass 1: one serial walk over record headers.

use std::num::NonZeroUsize;
use std::thread;

use rperf_memory::push;
use rperf_perfdata::{PerfData, RecordAt};
use rperf_wire::{Endian, RawRecord, RecordKind};

use crate::ahead::{Ahead, Walked};
use crate::deferred::Deferred;
use crate::events::EventTable;
use crate::pages::Pages;
use crate::shares::{LastValues, Shares, Values};
use crate::tally::Tally;
use crate::{Diagnostics, Error, Order, Rounds, World, WorldBuilder};

/// A stretch of the data that begins and ends at record borders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// File offset of the first record.
    pub(crate) start: u64,
    /// File offset behind the last record.
    pub(crate) end: u64,
    /// Bytes of samples in it: the work it makes.
    pub(crate) weight: u64,
}

/// A FINISHED_ROUND record and up to where it delivers. A recorder may end a round after every few samples; where there
/// are more than [`MANY_ROUNDS`], only one in [`ROUND_SPACING`] bytes is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) position: u64,
    limit: u64,
    /// Up to where nothing follows it: the limit, but where records come late.
    pub(crate) complete: u64,
}

/// A record without a time, and the flush limit that stands in for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timeless {
    position: u64,
    limit: u64,
}

/// What pass 1 finds.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) world: World,
    pub(crate) diagnostics: Diagnostics,
    /// Samples of each event.
    pub(crate) samples: Vec<u64>,
    pub(crate) slices: Vec<Slice>,
    pub(crate) rounds: Vec<Round>,
    timeless: Vec<Timeless>,
    pub(crate) shares: Shares,
    pub(crate) deferred: Deferred,
}

impl Scan {
    /// The time of the record without one at a file offset.
    pub(crate) fn limit(&self, position: u64) -> u64 {
        let before = self
            .timeless
            .partition_point(|first| first.position <= position);
        let last = before
            .checked_sub(1)
            .and_then(|last| self.timeless.get(last));
        last.map_or(0, |first| first.limit)
    }
}

/// Slices are cut when they have this many bytes.
const SLICE_SIZE: u64 = 256 << 10;
/// So many rounds are kept as they come.
const MANY_ROUNDS: usize = 512;
/// What is kept of records that are no samples, for errors.
pub(crate) const STATE: &str = "the places of records of mappings and threads";
/// Bytes between those kept after them.
const ROUND_SPACING: u64 = 32 << 10;

struct Scanner<'e, 'a> {
    events: &'e EventTable,
    endian: Endian,
    order: Rounds,
    /// Records that change the World, sorted later.
    state: Vec<(Order, RawRecord<'a>)>,
    tally: Tally,
    samples: Vec<u64>,
    slices: Vec<Slice>,
    open: Slice,
    rounds: Vec<Round>,
    /// Time of the earliest record since the last round that was kept.
    earliest: u64,
    /// Records without a time that no other has preceded under the same limit.
    timeless: Vec<Timeless>,
    /// Of the samples that hold some.
    values: Values,
    deferred: Deferred,
    pages: &'e Pages,
}

/// Walks all records of a file. With more than one thread, another goes before and brings in its pages.
///
/// # Errors
/// [`Error::Compressed`]: what is inside is not seen. [`Error::OutOfMemory`].
pub(crate) fn scan(
    data: &PerfData<'_>,
    events: &EventTable,
    threads: NonZeroUsize,
    walked: &Walked,
) -> Result<Scan, Error> {
    let pages = Pages::default();
    thread::scope(|scope| {
        if threads.get() > 1 && data.data().len() > SLICE_SIZE as usize {
            // Without it the walk is only slower.
            let _ = thread::Builder::new().spawn_scoped(scope, || pages.bring(data.data()));
        }
        let found = walk(data, events, &pages, walked);
        pages.end();
        found
    })
}

fn walk(
    data: &PerfData<'_>,
    events: &EventTable,
    pages: &Pages,
    walked: &Walked,
) -> Result<Scan, Error> {
    let start = data.data_offset();
    let mut scanner = Scanner {
        events,
        endian: data.endian(),
        order: Rounds::new(),
        state: Vec::new(),
        tally: Tally::default(),
        samples: vec![0; events.len()],
        slices: Vec::new(),
        open: Slice {
            start,
            end: start,
            weight: 0,
        },
        rounds: Vec::new(),
        earliest: u64::MAX,
        timeless: Vec::new(),
        values: Values::default(),
        deferred: Deferred::new(events.defer_callchains()),
        pages,
    };
    let mut records = data.records();
    let mut ahead = Ahead::new(data.data(), start, walked);
    while let Some(record) = records.next_whole() {
        ahead.reach(records.position());
        scanner.record(&record, records.position())?;
    }
    // What is left is damaged.
    scanner.tally.found.end = records.next().and_then(Result::err);
    let end = &mut scanner.tally.found.end;
    *end = end.take().or_else(|| data.end().cloned());
    Ok(scanner.finish(data))
}

impl<'a> Scanner<'_, 'a> {
    fn record(&mut self, at: &RecordAt<'a>, end: u64) -> Result<(), Error> {
        let kind = at.raw.kind;
        self.tally.count(kind);
        if kind == RecordKind::SAMPLE {
            self.sample(at, end - at.position);
        } else {
            self.other(at)?;
        }
        self.open.end = end;
        if end - self.open.start >= SLICE_SIZE {
            self.cut();
        }
        Ok(())
    }

    #[inline]
    fn sample(&mut self, at: &RecordAt<'a>, size: u64) {
        self.open.weight += size;
        let Some(glance) = self.events.glance(at.raw.body) else {
            self.tally.found.unknown_ids += 1;
            return;
        };
        let order = self.place(glance.time, at.position);
        if self.events.holds_values(glance.event) && self.values(at, order) {
            return;
        }
        if let Some(count) = self.samples.get_mut(glance.event.0 as usize) {
            *count += 1;
        }
    }

    /// Takes the values that a sample holds; false where they cannot be decoded.
    #[cold]
    fn values(&mut self, at: &RecordAt<'a>, order: Order) -> bool {
        let sample = self.events.sample(&at.raw, |_| order);
        let Some(read) = sample.ok().flatten().and_then(|sample| sample.wire.read) else {
            return false;
        };
        let event_of = |id| self.events.exactly(id);
        self.tally.found.unknown_ids += self.values.add(order, &read, event_of);
        true
    }

    fn other(&mut self, at: &RecordAt<'a>) -> Result<(), Error> {
        let raw = &at.raw;
        match raw.kind {
            RecordKind::FINISHED_ROUND => {
                self.round(at.position);
                return Ok(());
            }
            RecordKind::COMPRESSED | RecordKind::COMPRESSED2 => {
                return Err(Error::Compressed {
                    offset: at.position,
                });
            }
            RecordKind(kind) if kind >= RecordKind::USER_TYPE_START => {
                self.timeless(at.position);
                return Ok(());
            }
            _ => {}
        }
        let time = self.events.record_time(raw);
        let order = self.place(time, at.position);
        if WorldBuilder::wants(raw.kind) {
            push(&mut self.state, (order, *raw)).map_err(Error::no_room(STATE))?;
        } else if matches!(raw.kind, RecordKind::LOST | RecordKind::LOST_SAMPLES) {
            self.tally.lost(at, self.endian);
        } else if raw.kind == RecordKind::CALLCHAIN_DEFERRED {
            let key = self.events.waited_for(raw);
            key.into_iter()
                .for_each(|key| self.deferred.add(key, order));
        }
        Ok(())
    }

    /// Place of a record that perf would put into its queue.
    #[inline]
    fn place(&mut self, time: Option<u64>, position: u64) -> Order {
        if time.is_none() {
            self.timeless(position);
        }
        let order = self.order.order(time, position);
        self.earliest = self.earliest.min(order.time);
        order
    }

    /// A record without a time: it is delivered as if it had that of the flush limit.
    #[cold]
    fn timeless(&mut self, position: u64) {
        let limit = self.order.limit();
        if self.timeless.last().map_or(0, |first| first.limit) != limit {
            self.timeless.push(Timeless { position, limit });
        }
    }

    fn round(&mut self, position: u64) {
        self.order.finish_round();
        let last = self.rounds.last().map_or(0, |round| round.position);
        if self.rounds.len() >= MANY_ROUNDS && position - last < ROUND_SPACING {
            return;
        }
        self.rounds.push(Round {
            position,
            limit: self.order.limit(),
            // Until all are known, the earliest record before it.
            complete: std::mem::replace(&mut self.earliest, u64::MAX),
        });
    }

    fn cut(&mut self) {
        let end = self.open.end;
        let next = Slice {
            start: end,
            end,
            weight: 0,
        };
        self.slices.push(std::mem::replace(&mut self.open, next));
        let walked = self.slices.first().map_or(0, |first| end - first.start);
        self.pages
            .walked(usize::try_from(walked).unwrap_or(usize::MAX));
    }

    /// Finds out for each round up to where nothing follows it.
    fn complete_rounds(&mut self) {
        let mut earliest = self.earliest;
        for round in self.rounds.iter_mut().rev() {
            let before = std::mem::replace(&mut round.complete, earliest.min(round.limit));
            earliest = earliest.min(before);
        }
    }

    fn finish(mut self, data: &PerfData<'_>) -> Scan {
        self.complete_rounds();
        if self.open.end > self.open.start {
            self.cut();
        }
        let mut diagnostics = self.tally.finish();
        diagnostics.out_of_order = self.order.late();
        let mut builder = WorldBuilder::new(self.endian);
        builder.build_ids(&data.features().build_ids());
        self.state.sort_by_key(|(order, _)| *order);
        for (order, raw) in &self.state {
            if let Err(error) = builder.push(*order, raw) {
                diagnostics.bad_records.add(order.position, error);
            }
        }
        let shares = self.values.finish(&mut LastValues::default());
        shares.count(&mut self.samples);
        Scan {
            world: builder.finish(),
            diagnostics,
            shares,
            deferred: self.deferred.sorted(),
            samples: self.samples,
            slices: self.slices,
            rounds: self.rounds,
            timeless: self.timeless,
        }
    }
}
