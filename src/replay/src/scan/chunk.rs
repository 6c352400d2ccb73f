//! Scanning of one chunk of the data, independently of the chunks before it.

use rperf_memory::push;
use rperf_perfdata::{PerfData, RecordAt, Records};
use rperf_wire::{Endian, RawRecord, RecordKind};

use super::{DataSlice, WORLD_CHANGES};
use crate::deferred::DeferredKey;
use crate::events::{EventTable, SampleHead};
use crate::prefetch::{BytesRead, Prefetcher};
use crate::record_counter::RecordCounter;
use crate::{Error, WorldBuilder};

/// The minimum size in bytes of a slice, a part of the data that later passes read as a unit. The last one of a
/// chunk may be smaller.
const SLICE_SIZE: u64 = 256 << 10;

/// The result of scanning a chunk. `None` if it was not scanned: no record boundary was found at its start, or only one thread
/// reads, which scans it later from its exact start.
pub(super) type Scanned<'a> = Option<Result<Chunk<'a>, Error>>;

/// Scans chunks of a file.
#[derive(Debug)]
pub(super) struct ChunkScanner<'e, 'a> {
    pub(super) data: &'e PerfData<'a>,
    pub(super) events: &'e EventTable,
    /// Counts the bytes read, for progress.
    walked: &'e BytesRead,
}

/// File offset of a record, and its time if it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPosition {
    pub(super) position: u64,
    pub(super) time: Option<u64>,
}

/// Results of reading the records of a chunk.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    /// File offset of the first record.
    pub(super) start: u64,
    /// File offset of the end of the last record.
    pub(super) end: u64,
    pub(super) tally: RecordCounter,
    /// Number of samples of each event, without those in `values` and those of unknown events.
    pub(super) samples: Vec<u64>,
    pub(super) slices: Vec<DataSlice>,
    /// The CPU modes of samples: bit n is set if a sample has mode n.
    pub(super) modes: u8,
    /// The ranges between FINISHED_ROUND records; the first and the last one are limited by the chunk.
    pub(super) segments: Vec<Segment>,
    /// Records that change the World (the processes and mappings at each time).
    pub(super) world_changes: Vec<(RecordPosition, RawRecord<'a>)>,
    /// Samples with counter values (`PERF_SAMPLE_READ`).
    pub(super) values: Vec<(RecordPosition, RawRecord<'a>)>,
    /// CALLCHAIN_DEFERRED records, each with the key that it shares with its samples.
    pub(super) deferred: Vec<(RecordPosition, DeferredKey)>,
}

/// The part of a round (the records between two FINISHED_ROUND records) that is in one chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) start: u64,
    /// Offset of the FINISHED_ROUND record, or the end of the chunk.
    pub(super) end: u64,
    /// Whether a FINISHED_ROUND record follows.
    pub(super) is_finished: bool,
    /// Lowest time; `u64::MAX` if no record has a time.
    pub(super) lowest: u64,
    /// Highest time; 0 if no record has a time.
    pub(super) highest: u64,
    /// Offset of the first record without a time, if any.
    pub(super) first_timeless: Option<u64>,
}

impl Segment {
    fn new(start: u64) -> Self {
        Self {
            start,
            end: start,
            is_finished: false,
            lowest: u64::MAX,
            highest: 0,
            first_timeless: None,
        }
    }

    #[inline]
    fn add(&mut self, record: RecordPosition) {
        match record.time {
            Some(time) => {
                self.lowest = self.lowest.min(time);
                self.highest = self.highest.max(time);
            }
            None => self.add_timeless(record.position),
        }
    }

    /// Adds a record without a time.
    #[cold]
    fn add_timeless(&mut self, position: u64) {
        self.first_timeless.get_or_insert(position);
    }
}

/// Summary of consecutive samples, faster to update than a chunk and its segment.
#[derive(Debug, Clone, Copy)]
struct SampleRun {
    /// Number of all samples, unlike [`Chunk::samples`].
    samples: u64,
    /// As in [`Chunk`].
    modes: u8,
    /// As in [`Segment`].
    lowest: u64,
    /// As in [`Segment`].
    highest: u64,
}

impl SampleRun {
    const EMPTY: Self = Self {
        samples: 0,
        modes: 0,
        lowest: u64::MAX,
        highest: 0,
    };
}

impl<'e, 'a> ChunkScanner<'e, 'a> {
    pub(super) fn new(
        data: &'e PerfData<'a>,
        events: &'e EventTable,
        walked: &'e BytesRead,
    ) -> Self {
        Self {
            data,
            events,
            walked,
        }
    }

    /// The records from a file offset on.
    pub(super) fn records(&self, start: u64) -> Records<'a> {
        Records::new(self.data.data_from(start), start, self.data.endian())
    }

    /// Scans the records that begin in `start..end`; stops at an invalid record.
    ///
    /// # Errors
    /// [`Error::Compressed`] for compressed records, and [`Error::OutOfMemory`].
    pub(super) fn scan(&self, start: u64, end: u64) -> Result<Chunk<'a>, Error> {
        // One copy of the loop for each byte order.
        match self.data.endian() {
            Endian::Little => self.scan_in(start, end, Endian::Little),
            Endian::Big => self.scan_in(start, end, Endian::Big),
        }
    }

    #[inline(always)]
    fn scan_in(&self, start: u64, end: u64, endian: Endian) -> Result<Chunk<'a>, Error> {
        let size = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let bytes = self.data.data_from(start);
        let mut prefetcher =
            Prefetcher::new(bytes.get(..size).unwrap_or(bytes), start, self.walked);
        let mut records = Records::new(bytes, start, endian);
        let mut builder = ChunkBuilder::new(self, start, endian);
        // Not in the builder, so that it stays in registers.
        let mut run = SampleRun::EMPTY;
        while records.position() < end {
            if let Some(sample) = records.next_sample() {
                prefetcher.advance(records.position());
                builder.sample(&sample, records.position(), &mut run)?;
                continue;
            }
            builder.end_run(run);
            run = SampleRun::EMPTY;
            let Some(record) = records.next_valid() else {
                break;
            };
            prefetcher.advance(records.position());
            builder.non_sample(&record, records.position())?;
        }
        builder.end_run(run);
        Ok(builder.finish(records.position()))
    }
}

/// A chunk under construction, with its current slice and segment.
struct ChunkBuilder<'e, 'a> {
    events: &'e EventTable,
    endian: Endian,
    chunk: Chunk<'a>,
    /// File offset of the start of the current slice.
    slice_start: u64,
    /// Size of the records in the current slice that are not samples, in bytes.
    other_bytes: u64,
    /// The current segment.
    segment: Segment,
    /// Whether samples of any event have counter values.
    any_holds_values: bool,
}

impl<'e, 'a> ChunkBuilder<'e, 'a> {
    #[inline(always)]
    fn new(scanner: &ChunkScanner<'e, 'a>, start: u64, endian: Endian) -> Self {
        Self {
            events: scanner.events,
            endian,
            chunk: Chunk {
                start,
                end: start,
                tally: RecordCounter::default(),
                samples: vec![0; scanner.events.len()],
                slices: Vec::new(),
                modes: 0,
                segments: Vec::new(),
                world_changes: Vec::new(),
                values: Vec::new(),
                deferred: Vec::new(),
            },
            slice_start: start,
            other_bytes: 0,
            segment: Segment::new(start),
            any_holds_values: scanner.events.any_holds_values(),
        }
    }

    /// Adds a sample; `end` is the file offset of its end. Its CPU mode and time are added to `run`; in a recording with counter
    /// values, the time is added to the segment instead.
    #[inline(always)]
    fn sample(&mut self, at: &RecordAt<'a>, end: u64, run: &mut SampleRun) -> Result<(), Error> {
        run.samples += 1;
        run.modes |= 1 << at.raw.misc.mode_bits().0;
        match self.events.sample_head_in(at.raw.body, self.endian) {
            Some(head) if self.any_holds_values => self.sample_with_values(at, head)?,
            Some(head) => {
                if let Some(count) = self.chunk.samples.get_mut(head.event.0 as usize) {
                    *count += 1;
                }
                match head.time {
                    Some(time) => {
                        run.lowest = run.lowest.min(time);
                        run.highest = run.highest.max(time);
                    }
                    None => self.segment.add_timeless(at.position),
                }
            }
            None => self.chunk.tally.statistics.unknown_ids += 1,
        }
        if end - self.slice_start >= SLICE_SIZE {
            self.end_slice(end);
        }
        Ok(())
    }

    /// Adds a sample of a recording in which samples have counter values.
    #[inline(never)]
    fn sample_with_values(&mut self, at: &RecordAt<'a>, head: SampleHead) -> Result<(), Error> {
        let record = RecordPosition {
            position: at.position,
            time: head.time,
        };
        self.segment.add(record);
        if self.events.holds_values(head.event) {
            let values = &mut self.chunk.values;
            // Not a change of the World, but errors describe all lists of records alike.
            return push(values, (record, at.raw)).map_err(Error::no_room(WORLD_CHANGES));
        }
        if let Some(count) = self.chunk.samples.get_mut(head.event.0 as usize) {
            *count += 1;
        }
        Ok(())
    }

    /// Adds the samples of a run to chunk and segment.
    fn end_run(&mut self, run: SampleRun) {
        self.chunk.tally.count_samples(run.samples);
        self.chunk.modes |= run.modes;
        self.segment.lowest = self.segment.lowest.min(run.lowest);
        self.segment.highest = self.segment.highest.max(run.highest);
    }

    /// Adds a record other than a sample; `end` is the file offset of its end.
    #[inline(never)]
    fn non_sample(&mut self, at: &RecordAt<'a>, end: u64) -> Result<(), Error> {
        self.chunk.tally.count(at.raw.kind);
        self.other_bytes += end - at.position;
        self.keep(at, end)?;
        if end - self.slice_start >= SLICE_SIZE {
            self.end_slice(end);
        }
        Ok(())
    }

    /// Ends the round at FINISHED_ROUND, and refuses compressed records; keeps the parts of other records that are needed later.
    fn keep(&mut self, at: &RecordAt<'a>, end: u64) -> Result<(), Error> {
        let raw = &at.raw;
        match raw.kind {
            RecordKind::FINISHED_ROUND => {
                self.end_round(at.position, end);
                return Ok(());
            }
            RecordKind::COMPRESSED | RecordKind::COMPRESSED2 => {
                return Err(Error::Compressed {
                    offset: at.position,
                });
            }
            _ => {}
        }
        let record = RecordPosition {
            position: at.position,
            time: self.events.record_time(raw),
        };
        self.segment.add(record);
        // Written by perf, not by the kernel: nothing of it is kept.
        if raw.kind.is_user() {
            return Ok(());
        }
        if WorldBuilder::changes_world(raw.kind) {
            push(&mut self.chunk.world_changes, (record, *raw))
                .map_err(Error::no_room(WORLD_CHANGES))?;
        } else {
            self.chunk.tally.check_kernel_record(at, self.endian);
        }
        if raw.kind == RecordKind::CALLCHAIN_DEFERRED {
            let key = self.events.deferred_key(raw);
            self.chunk.deferred.extend(key.map(|key| (record, key)));
        }
        Ok(())
    }

    /// Ends the segment at a FINISHED_ROUND record from `position` to `end`.
    fn end_round(&mut self, position: u64, end: u64) {
        self.segment.end = position;
        self.segment.is_finished = true;
        let next = Segment::new(end);
        let ended = std::mem::replace(&mut self.segment, next);
        self.chunk.segments.push(ended);
    }

    #[cold]
    fn end_slice(&mut self, end: u64) {
        let start = std::mem::replace(&mut self.slice_start, end);
        let other_bytes = std::mem::take(&mut self.other_bytes);
        self.chunk.slices.push(DataSlice {
            start,
            end,
            weight: end - start - other_bytes,
        });
    }

    fn finish(mut self, end: u64) -> Chunk<'a> {
        if end > self.slice_start {
            self.end_slice(end);
        }
        self.segment.end = end;
        self.chunk.segments.push(self.segment);
        self.chunk.end = end;
        self.chunk
    }
}
