//! Prefetching of a recording's memory into the caches of the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress over a recording, in bytes of all passes together.
#[derive(Debug, Clone, Default)]
pub struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// Number of bytes that the passes have reached so far, prefetched ones included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Prefetches memory for a loop over records. The position of the next record depends on the
/// current header, so the loop alone would wait for memory at every header. Reading a byte of each
/// cache line of the following range, which the processor does in parallel, is faster.
#[derive(Debug, Clone)]
pub(crate) struct Prefetcher<'a> {
    bytes: &'a [u8],
    /// Offset of `bytes` in the file.
    start: u64,
    /// Offset up to which the file was prefetched or skipped.
    fetched: u64,
    /// Number of records since `fetched` was last advanced, the current one included.
    passed: usize,
    /// The progress of all passes, to which this one adds the bytes up to `fetched`.
    progress: BytesRead,
}

/// Bytes prefetched at a time; they stay in the caches until used.
const PREFETCH_BYTES: usize = 16 << 10;
/// If the last range had at most this number of records (one per KiB), the next one is skipped: few cache lines are likely read.
const MAX_SPARSE_RECORDS: usize = PREFETCH_BYTES / 1024;
/// The assumed size of a cache line in bytes.
const CACHE_LINE: usize = 64;

impl<'a> Prefetcher<'a> {
    /// Creates a prefetcher for a loop over `bytes`, which start at `start` of the file.
    pub(crate) fn new(bytes: &'a [u8], start: u64, progress: &BytesRead) -> Self {
        Self {
            bytes,
            start,
            fetched: start,
            // The first range is always prefetched.
            passed: MAX_SPARSE_RECORDS,
            progress: progress.clone(),
        }
    }

    /// Prefetches or skips the next range, unless the first [`CACHE_LINE`] bytes of the record at file offset `position` are in
    /// earlier ranges. Called before this record is read.
    #[inline]
    pub(crate) fn advance(&mut self, position: u64) {
        self.passed += 1;
        if position + CACHE_LINE as u64 > self.fetched {
            self.prefetch_from(position);
        }
    }

    #[cold]
    fn prefetch_from(&mut self, position: u64) {
        let from = position.max(self.fetched);
        let offset = usize::try_from(from - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(offset..).unwrap_or_default();
        if self.passed > MAX_SPARSE_RECORDS {
            fetch(rest.get(..PREFETCH_BYTES).unwrap_or(rest));
        }
        let end = self.start + self.bytes.len() as u64;
        let fetched = from + PREFETCH_BYTES as u64;
        let newly_reached = fetched.min(end).saturating_sub(self.fetched);
        self.progress.0.fetch_add(newly_reached, Ordering::Relaxed);
        self.fetched = fetched;
        self.passed = 0;
    }
}

/// Reads a byte of each cache line.
pub(crate) fn fetch(bytes: &[u8]) {
    let read = bytes
        .iter()
        .step_by(CACHE_LINE)
        .fold(0, |sum, byte| sum ^ byte);
    std::hint::black_box(read);
}
