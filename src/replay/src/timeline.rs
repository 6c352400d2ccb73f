//! Positions of samples, and of other records if they are wanted, in order of time; computed incrementally.

use std::iter::Peekable;
use std::slice::Iter;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{Builder, Scope};

use rperf_memory::{push, reserve};
use rperf_perfdata::Records;
use rperf_wire::{Endian, RecordKind};

use crate::prefetch::Prefetcher;
use crate::scan::{DataSlice, FinishedRound};
use crate::{Error, EventIndex, Order, Replay};

/// An iterator over blocks of positions of samples, and of other records if they are wanted, in order of time; in file order if
/// FINISHED_ROUND records are wanted. After a FINISHED_ROUND is read, all records up to [`FinishedRound::complete_until`] can be
/// returned: none of the records that follow, not even a late one (see [`crate::Rounds::late`]), has an earlier time. Uses 16
/// bytes of memory per record of about two rounds.
///
/// A position is here an [`Order`]: the time and the file offset of a record.
pub(crate) struct Timeline<'r, 'a> {
    reader: SliceReader<'r, 'a>,
    slices: Iter<'r, DataSlice>,
    /// Receivers of the positions in slices, one for each reading thread; the threads read slices in turn. If there are no
    /// receivers, slices are read on this thread.
    receivers: Vec<Receiver<Result<Vec<Order>, Error>>>,
    /// Number of slices that were read so far.
    slices_read: usize,
    rounds: Peekable<Iter<'r, FinishedRound>>,
    /// Positions that were read and are not dropped yet. The first `complete` of them are in the order in which
    /// they are returned.
    window: Vec<Order>,
    /// Number of positions at the start of the window that can be returned.
    complete: usize,
    /// Number of positions at the start of the window that were returned.
    returned: usize,
    /// Maximum number of positions in a block.
    block_size: usize,
    /// Whether nothing more is read: at the end of the file, or after an error.
    ended: bool,
    /// The error that ended the iteration before the end of the file.
    failed: Option<Error>,
}

/// Reads the positions of samples, and of other records if they are wanted.
#[derive(Clone, Copy)]
pub(crate) struct SliceReader<'r, 'a> {
    replay: &'r Replay<'a>,
    wanted: &'r [RecordKind],
    /// Whether samples are skipped, by event; empty if none are.
    skipped: &'r [bool],
}

/// Name of the allocated data in errors.
pub(crate) const SAMPLE_INDEX: &str = "the sample index";

/// Maximum number of samples in a block.
const MAX_BLOCK: usize = 1024;
/// Number of samples in a block if they are large.
const MIN_BLOCK: usize = MAX_BLOCK / 32;
/// Target size of a block's records in bytes: small enough that the text rendered from them is still in a core's second-level
/// cache when it is written, large enough that threads seldom wait for the next block.
const BLOCK_BYTES: u64 = 96 << 10;

/// The number of samples in a block whose records have about [`BLOCK_BYTES`]; from [`MIN_BLOCK`] to [`MAX_BLOCK`].
fn block_size(replay: &Replay<'_>) -> usize {
    let samples: u64 = replay.sample_counts().iter().sum();
    let bytes_per_sample = (replay.data().data().len() as u64).checked_div(samples);
    let fitting = BLOCK_BYTES / bytes_per_sample.unwrap_or(1).max(1);
    usize::try_from(fitting).map_or(MAX_BLOCK, |fitting| fitting.clamp(MIN_BLOCK, MAX_BLOCK))
}

/// Number of rendering threads for each thread that reads slices.
const RENDERERS_PER_READER: usize = 8;
/// Number of slices that a thread reads ahead.
const SLICES_AHEAD: usize = 4;

impl<'r, 'a> SliceReader<'r, 'a> {
    /// Creates a reader of the samples of `replay`, except those of the events marked in `skipped`, and of the records of the
    /// types in `wanted`.
    pub(crate) fn new(
        replay: &'r Replay<'a>,
        wanted: &'r [RecordKind],
        skipped: &'r [bool],
    ) -> Self {
        Self {
            replay,
            wanted,
            skipped,
        }
    }

    fn is_skipped(&self, event: EventIndex) -> bool {
        self.skipped.get(event.0 as usize) == Some(&true)
    }

    /// Whether records are returned in file order: if FINISHED_ROUND records are wanted (see [`crate::Render::wanted`]).
    fn is_in_file_order(&self) -> bool {
        self.wanted.contains(&RecordKind::FINISHED_ROUND)
    }

    /// The positions of the records of a slice, sorted unless they are wanted in file order.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn read(&self, slice: &DataSlice) -> Result<Vec<Order>, Error> {
        // One copy of the loop for each byte order.
        match self.replay.endian() {
            Endian::Little => self.read_in(slice, Endian::Little),
            Endian::Big => self.read_in(slice, Endian::Big),
        }
    }

    #[inline(always)]
    fn read_in(&self, slice: &DataSlice, endian: Endian) -> Result<Vec<Order>, Error> {
        let replay = self.replay;
        let bytes = replay.bytes_of(slice);
        let mut records = Records::new(bytes, slice.start, endian);
        // `walked` counts the bytes read, for the display of progress.
        let mut prefetcher = Prefetcher::new(bytes, slice.start, &replay.walked);
        let mut orders = Vec::new();
        let mut add = |order| push(&mut orders, order).map_err(Error::no_room(SAMPLE_INDEX));
        loop {
            prefetcher.advance(records.position());
            if let Some(sample) = records.next_sample() {
                if let Some(head) = replay.events.sample_head_in(sample.raw.body, endian)
                    && !self.is_skipped(head.event)
                {
                    let position = sample.position;
                    // A sample without a time gets the flush limit (see `Rounds::limit`) as its time.
                    let time = head.time.unwrap_or_else(|| replay.limit(position));
                    add(Order { time, position })?;
                }
                continue;
            }
            let Some(record) = records.next_valid() else {
                break;
            };
            if self.wanted.contains(&record.raw.kind) {
                add(replay.order_of(&record))?;
            }
        }
        if !self.is_in_file_order() {
            orders.sort_by_key(|order| order.rank());
        }
        Ok(orders)
    }

    /// Starts the threads that read slices for a Timeline whose samples are rendered by `threads` threads, and returns the
    /// receivers for [`Timeline::new`]; none if one of the reading threads cannot be started.
    pub(crate) fn start<'s>(
        self,
        scope: &'s Scope<'s, '_>,
        threads: usize,
    ) -> Vec<Receiver<Result<Vec<Order>, Error>>>
    where
        'r: 's,
        'a: 's,
    {
        let reader_count = threads.div_ceil(RENDERERS_PER_READER);
        let slices = &self.replay.scan.slices;
        let start_reader = |reader| {
            let (sender, receiver) = sync_channel(SLICES_AHEAD);
            let read = move || {
                for slice in slices.iter().skip(reader).step_by(reader_count) {
                    // The receiver may have been dropped: with the Timeline, or since another reader could not be started.
                    if sender.send(self.read(slice)).is_err() {
                        return;
                    }
                }
            };
            Builder::new().spawn_scoped(scope, read).ok()?;
            Some(receiver)
        };
        // Each reader has a fixed share of the slices, so either all readers are used or none.
        let started: Option<Vec<_>> = (0..reader_count).map(start_reader).collect();
        started.unwrap_or_default()
    }
}

impl<'r, 'a> Timeline<'r, 'a> {
    /// Creates the iterator over the positions that `receivers` deliver; if there are no receivers, `reader` reads the slices.
    pub(crate) fn new(
        reader: SliceReader<'r, 'a>,
        receivers: Vec<Receiver<Result<Vec<Order>, Error>>>,
    ) -> Self {
        let replay = reader.replay;
        Self {
            reader,
            slices: replay.scan.slices.iter(),
            receivers,
            slices_read: 0,
            rounds: replay.scan.rounds.iter().peekable(),
            window: Vec::new(),
            complete: 0,
            returned: 0,
            block_size: block_size(replay),
            ended: false,
            failed: None,
        }
    }

    /// Reports the error that ended the iteration early, if any.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if not all samples could be sorted.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.failed.map_or(Ok(()), Err)
    }

    /// The positions of the records of `slice`, which must be the next one.
    fn read(&mut self, slice: &DataSlice) -> Result<Vec<Order>, Error> {
        let turn = self.slices_read.checked_rem(self.receivers.len());
        let receiver = turn.and_then(|turn| self.receivers.get(turn));
        self.slices_read += 1;
        // A thread that panicked sends nothing; the scope propagates the panic.
        let received = receiver.and_then(|receiver| receiver.recv().ok());
        received.unwrap_or_else(|| self.reader.read(slice))
    }

    /// Drops the returned positions, and reads until a round has ended and the window is large enough, or to the end.
    fn refill(&mut self) -> Result<(), Error> {
        self.window.drain(..self.returned);
        self.returned = 0;
        let mut complete_until = None;
        // Small rounds are collected: blocks should not be too small, and each refill sorts again the positions that could not be
        // returned yet.
        let enough = MAX_BLOCK.max(2 * self.window.len());
        while complete_until.is_none() || self.window.len() < enough {
            let Some(slice) = self.slices.next() else {
                self.ended = true;
                break;
            };
            let orders = self.read(slice)?;
            if self.window.capacity() - self.window.len() < orders.len() {
                let more = orders.len().max(self.window.len());
                reserve(&mut self.window, more).map_err(Error::no_room(SAMPLE_INDEX))?;
            }
            self.window.extend_from_slice(&orders);
            let is_inside = |round: &&FinishedRound| round.position < slice.end;
            while let Some(round) = self.rounds.next_if(is_inside) {
                complete_until = Some(round.complete_until);
            }
        }
        if self.reader.is_in_file_order() {
            self.complete = self.window.len();
            return Ok(());
        }
        // A stable sort, since it detects the sorted slices and merges them.
        self.window.sort_by_key(|order| order.rank());
        self.complete = if self.ended {
            self.window.len()
        } else {
            let complete_until = complete_until.unwrap_or_default();
            let is_complete = |order: &Order| order.time <= complete_until;
            self.window.partition_point(is_complete)
        };
        Ok(())
    }
}

impl Iterator for Timeline<'_, '_> {
    type Item = Vec<Order>;

    fn next(&mut self) -> Option<Vec<Order>> {
        while self.returned == self.complete && !self.ended {
            if let Err(error) = self.refill() {
                // Nothing more is returned.
                (self.complete, self.ended) = (self.returned, true);
                self.failed = Some(error);
            }
        }
        let end = self.complete.min(self.returned + self.block_size);
        let block = self.window.get(self.returned..end).unwrap_or_default();
        self.returned = end;
        (!block.is_empty()).then(|| block.to_vec())
    }
}
