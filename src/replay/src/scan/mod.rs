//! Pass 1: record headers, read by several threads.
//!
//! A record begins where the one before it ends, so a file can only be read from its start. Each thread therefore
//! guesses where the first record of a chunk begins ([`boundary`]), and scans the chunk from there ([`chunk`]). The
//! results are joined in file order ([`join`]). If the records before a chunk do not end at the guessed position, the
//! chunk is scanned again. Wrong guesses cost time only.

mod boundary;
mod chunk;
mod join;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rperf_perfdata::PerfData;

use self::chunk::{ChunkScanner, Scanned};
use self::join::Join;
use crate::deferred::DeferredCallchains;
use crate::events::EventTable;
use crate::group_samples::GroupSamples;
use crate::prefetch::BytesRead;
use crate::threads::{locked, on_threads};
use crate::{Diagnostics, Error, World};

/// A range of the data that starts and ends at record boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DataSlice {
    /// File offset of the first record.
    pub(crate) start: u64,
    /// File offset of the end.
    pub(crate) end: u64,
    /// Sample bytes in it, as an estimate of the work.
    pub(crate) weight: u64,
}

/// A FINISHED_ROUND record. Recorders may end rounds after every few samples, so the first rounds of a file are all kept, but
/// later ones only at distances of at least [`join::ROUND_SPACING`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FinishedRound {
    pub(crate) position: u64,
    /// The flush limit after this record: the time up to which perf would have delivered records.
    limit: u64,
    /// No record with an earlier time follows; equal to `limit` unless later records are late.
    pub(crate) complete_until: u64,
}

/// A record without a time, and the flush limit that is used as its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimelessRecord {
    position: u64,
    limit: u64,
}

/// Results of pass 1.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) world: World,
    pub(crate) diagnostics: Diagnostics,
    /// Number of samples of each event.
    pub(crate) samples: Vec<u64>,
    pub(crate) slices: Vec<DataSlice>,
    /// The CPU modes of samples: bit n is set if a sample has mode n.
    pub(crate) modes: u8,
    pub(crate) rounds: Vec<FinishedRound>,
    /// The first record without a time after each change of the flush limit, in file order.
    timeless: Vec<TimelessRecord>,
    /// What samples of group leaders contribute to each member of the group.
    pub(crate) shares: GroupSamples,
    pub(crate) deferred: DeferredCallchains,
}

impl Scan {
    /// The time used for a record without a time at this file offset; 0 if no such record is at or before the offset.
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

/// Size of a chunk in bytes.
const CHUNK_SIZE: u64 = 1 << 20;
/// Name in errors of the data kept from records that change the World (the processes and mappings at a time).
pub(crate) const WORLD_CHANGES: &str = "the positions of records of mappings and threads";

/// Reads all records of a file on at most `threads` threads. `walked` counts the bytes read, for progress.
///
/// # Errors
/// [`Error::Compressed`] for compressed records, and [`Error::OutOfMemory`].
pub(crate) fn scan(
    data: &PerfData<'_>,
    events: &EventTable,
    threads: NonZeroUsize,
    walked: &BytesRead,
) -> Result<Scan, Error> {
    let scanner = ChunkScanner::new(data, events, walked);
    scan_chunks(&scanner, threads, CHUNK_SIZE)
}

/// Reads all records in chunks of about `size` bytes. The result depends on neither the threads nor the guesses.
fn scan_chunks(
    scanner: &ChunkScanner<'_, '_>,
    threads: NonZeroUsize,
    size: u64,
) -> Result<Scan, Error> {
    let start = scanner.data.data_offset();
    let chunks = (scanner.data.data().len() as u64).div_ceil(size);
    // The last chunk has all the rest.
    let end_of = |index: u64| match index + 1 == chunks {
        true => u64::MAX,
        false => start + (index + 1) * size,
    };
    let mut join = Join::new(scanner);
    if threads.get() == 1 || chunks <= 1 {
        for index in 0..chunks {
            // Not scanned yet: `add` scans the chunk.
            join.add(None, end_of(index));
        }
        return join.finish();
    }
    let shared = Mutex::new(InOrder::new(join));
    let next_to_scan = AtomicU64::new(0);
    let worker = || {
        loop {
            let index = next_to_scan.fetch_add(1, Ordering::Relaxed);
            if index >= chunks {
                return;
            }
            let end = end_of(index);
            let first = scanner.first_record(start + index * size);
            let chunk = first.map(|first| scanner.scan(first, end));
            let needs_more = locked(&shared).add(index, chunk, end);
            if !needs_more {
                // The other threads stop, too.
                next_to_scan.store(chunks, Ordering::Relaxed);
            }
        }
    };
    on_threads(threads.get(), worker);
    let ordered = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    ordered.join.finish()
}

/// Joins chunks in file order; they may arrive in any order.
struct InOrder<'s, 'e, 'a> {
    join: Join<'s, 'e, 'a>,
    /// Index of the next chunk to join.
    next: u64,
    /// Later chunks by index, each with the file offset of its end.
    waiting: BTreeMap<u64, (Scanned<'a>, u64)>,
}

impl<'s, 'e, 'a> InOrder<'s, 'e, 'a> {
    fn new(join: Join<'s, 'e, 'a>) -> Self {
        Self {
            join,
            next: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Adds a chunk, and joins all that are next in file order; returns whether further chunks are needed.
    fn add(&mut self, index: u64, chunk: Scanned<'a>, end: u64) -> bool {
        self.waiting.insert(index, (chunk, end));
        while let Some((chunk, end)) = self.waiting.remove(&self.next) {
            self.join.add(chunk, end);
            self.next += 1;
        }
        !self.join.has_ended()
    }
}
