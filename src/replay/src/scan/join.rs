//! Joining of chunks in file order: everything that depends on earlier records.

use rperf_memory::push;
use rperf_wire::{RawRecord, RecordKind};

use super::chunk::{Chunk, ChunkScanner, RecordPosition, Scanned, Segment};
use super::{DataSlice, FinishedRound, Scan, TimelessRecord, WORLD_CHANGES};
use crate::deferred::DeferredCallchains;
use crate::group_samples::{GroupCounts, LastValues};
use crate::record_counter::RecordCounter;
use crate::{BadRecord, Error, Order, Rounds, WorldBuilder};

/// Number of rounds at the start of a file that are all kept. Of the later ones only some are kept, since recorders may end a
/// round after every few samples.
const ALWAYS_KEPT_ROUNDS: usize = 512;
/// Minimum number of bytes between the rounds that are kept after the first [`ALWAYS_KEPT_ROUNDS`].
pub(super) const ROUND_SPACING: u64 = 32 << 10;

/// The chunks joined so far.
pub(super) struct Join<'s, 'e, 'a> {
    scanner: &'s ChunkScanner<'e, 'a>,
    /// File offset of the next record.
    position: u64,
    /// Whether reading has ended: at the end of the data, at damage, or after an error.
    ended: bool,
    failed: Option<Error>,
    /// The flush limit (the time up to which perf would have delivered records) at `position`, and the number of late records
    /// so far.
    flush: Rounds,
    /// Records that change the World (the processes and mappings at a time), sorted later.
    world_changes: Vec<(Order, RawRecord<'a>)>,
    tally: RecordCounter,
    /// Number of samples of each event.
    samples: Vec<u64>,
    slices: Vec<DataSlice>,
    /// The CPU modes of samples, one bit for each.
    modes: u8,
    /// The rounds that are kept.
    rounds: Vec<FinishedRound>,
    /// Lowest time of the records after the last round that was kept.
    earliest: u64,
    /// The first record without a time after each change of the flush limit.
    timeless: Vec<TimelessRecord>,
    /// Counter values in samples.
    values: GroupCounts,
    deferred: DeferredCallchains,
}

impl<'s, 'e, 'a> Join<'s, 'e, 'a> {
    pub(super) fn new(scanner: &'s ChunkScanner<'e, 'a>) -> Self {
        Self {
            scanner,
            position: scanner.data.data_offset(),
            ended: false,
            failed: None,
            flush: Rounds::new(),
            world_changes: Vec::new(),
            tally: RecordCounter::default(),
            samples: vec![0; scanner.events.len()],
            slices: Vec::new(),
            modes: 0,
            rounds: Vec::new(),
            earliest: u64::MAX,
            timeless: Vec::new(),
            values: GroupCounts::default(),
            deferred: DeferredCallchains::new(scanner.events.may_defer_callchains()),
        }
    }

    /// Whether further chunks are not needed.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Adds the records that begin before `end`: those of `chunk`, if it starts at the next record and was scanned without an
    /// error. Otherwise (maybe because its first record was guessed wrongly) the records are scanned here.
    pub(super) fn add(&mut self, chunk: Scanned<'a>, end: u64) {
        // No record begins in the chunk if an earlier record extends beyond it.
        if self.ended || self.position >= end {
            return;
        }
        let starts_here = |chunk: &Chunk<'_>| chunk.start == self.position;
        let chunk = match chunk {
            Some(Ok(chunk)) if starts_here(&chunk) => Ok(chunk),
            _ => self.scanner.scan(self.position, end),
        };
        if let Err(error) = chunk.and_then(|chunk| self.join(chunk)) {
            self.failed = Some(error);
            self.ended = true;
        }
        // A scan that stops before `end` has reached damage or the end of the data.
        self.ended |= self.position < end;
    }

    fn join(&mut self, chunk: Chunk<'a>) -> Result<(), Error> {
        let mut world_changes = chunk.world_changes.into_iter().peekable();
        let mut values = chunk.values.into_iter().peekable();
        let mut deferred = chunk.deferred.into_iter().peekable();
        self.tally.merge(chunk.tally);
        for segment in &chunk.segments {
            self.add_segment(segment);
            let is_inside = |record: &RecordPosition| record.position < segment.end;
            while let Some((record, raw)) = world_changes.next_if(|(record, _)| is_inside(record)) {
                let order = self.order_of(record);
                push(&mut self.world_changes, (order, raw))
                    .map_err(Error::no_room(WORLD_CHANGES))?;
            }
            while let Some((record, raw)) = values.next_if(|(record, _)| is_inside(record)) {
                self.add_values(record, &raw);
            }
            while let Some((record, key)) = deferred.next_if(|(record, _)| is_inside(record)) {
                self.deferred.add(key, self.order_of(record));
            }
            if segment.is_finished {
                self.end_round(segment.end);
            }
        }
        let samples = self.samples.iter_mut().zip(chunk.samples);
        samples.for_each(|(sum, count)| *sum += count);
        self.slices.extend(chunk.slices);
        self.modes |= chunk.modes;
        self.position = chunk.end;
        Ok(())
    }

    /// Position of a record in perf's order. A record without a time gets the current flush limit as its time.
    fn order_of(&self, record: RecordPosition) -> Order {
        Order {
            time: record.time.unwrap_or(self.flush.limit()),
            position: record.position,
        }
    }

    /// Adds the times of the records of a segment.
    fn add_segment(&mut self, segment: &Segment) {
        let limit = self.flush.limit();
        let late = match segment.lowest < limit {
            true => self.late_records(segment, limit),
            false => 0,
        };
        self.flush.add_range(segment.highest, late);
        self.earliest = self.earliest.min(segment.lowest);
        if let Some(position) = segment.first_timeless {
            self.earliest = self.earliest.min(limit);
            // `Scan::limit` returns 0 before the first entry, so the limit 0 needs none.
            if self.timeless.last().map_or(0, |last| last.limit) != limit {
                self.timeless.push(TimelessRecord { position, limit });
            }
        }
    }

    /// Number of records in a segment with a time before `limit`.
    #[cold]
    fn late_records(&self, segment: &Segment, limit: u64) -> u64 {
        let events = self.scanner.events;
        let mut records = self.scanner.records(segment.start);
        let mut late = 0;
        while records.position() < segment.end
            && let Some(record) = records.next_valid()
        {
            let time = match record.raw.kind {
                RecordKind::SAMPLE => events
                    .sample_head(record.raw.body)
                    .and_then(|head| head.time),
                _ => events.record_time(&record.raw),
            };
            late += u64::from(time.is_some_and(|time| time < limit));
        }
        late
    }

    /// Collects the counter values of a sample. A sample whose values cannot be decoded is counted as one without values.
    fn add_values(&mut self, record: RecordPosition, raw: &RawRecord<'_>) {
        let events = self.scanner.events;
        let order = self.order_of(record);
        let sample = events.sample(raw, |_| order);
        if let Some(read) = sample.ok().flatten().and_then(|sample| sample.wire.read) {
            let event_of = |id| events.exactly(id);
            self.tally.statistics.unknown_ids += self.values.add(order, &read, event_of);
            return;
        }
        let head = events.sample_head(raw.body);
        let count = head.and_then(|head| self.samples.get_mut(head.event.0 as usize));
        if let Some(count) = count {
            *count += 1;
        }
    }

    /// Ends a round; `position` is that of its FINISHED_ROUND record.
    fn end_round(&mut self, position: u64) {
        self.flush.finish_round();
        let last_kept = self.rounds.last().map_or(0, |round| round.position);
        if self.rounds.len() >= ALWAYS_KEPT_ROUNDS && position - last_kept < ROUND_SPACING {
            return;
        }
        self.rounds.push(FinishedRound {
            position,
            limit: self.flush.limit(),
            // For now the lowest time of the records since the previous kept round; `complete_rounds` replaces it.
            complete_until: std::mem::replace(&mut self.earliest, u64::MAX),
        });
    }

    /// Sets [`FinishedRound::complete_until`] of each round: its flush limit, or the lowest time of the records that follow the
    /// round if some of them are late (earlier than that limit).
    fn complete_rounds(&mut self) {
        let mut earliest = self.earliest;
        for round in self.rounds.iter_mut().rev() {
            let lowest_before =
                std::mem::replace(&mut round.complete_until, earliest.min(round.limit));
            earliest = earliest.min(lowest_before);
        }
    }

    /// Builds the World and returns the results of pass 1, the scan of all records.
    ///
    /// # Errors
    /// The first error of a chunk.
    pub(super) fn finish(mut self) -> Result<Scan, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.complete_rounds();
        let data = self.scanner.data;
        let mut diagnostics = self.tally.finish();
        // Only a damaged record can follow the last chunk.
        let damage = self.scanner.records(self.position).next();
        diagnostics.end = damage
            .and_then(Result::err)
            .or_else(|| data.unpack_error().cloned());
        diagnostics.out_of_order = self.scanner.events.out_of_order(&self.flush);
        let mut builder = WorldBuilder::new(data.endian());
        builder.add_build_ids(&data.features().build_ids());
        self.world_changes.sort_by_key(|(order, _)| *order);
        for (order, raw) in &self.world_changes {
            if let Err(error) = builder.push(*order, raw) {
                diagnostics.bad_records.add(BadRecord {
                    offset: order.position,
                    kind: raw.kind,
                    error,
                });
            }
        }
        // A share is what one event gets of a sample with the values of a group.
        let shares = self.values.finish(&mut LastValues::default());
        shares.add_counts(&mut self.samples);
        Ok(Scan {
            world: builder.finish(),
            diagnostics,
            shares,
            deferred: self.deferred.sorted(),
            samples: self.samples,
            slices: self.slices,
            modes: self.modes,
            rounds: self.rounds,
            timeless: self.timeless,
        })
    }
}
