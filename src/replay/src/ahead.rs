//! Reading ahead through memory that no core has seen yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a recording were walked over, in all passes together: for whoever waits.
#[derive(Debug, Clone, Default)]
pub struct Walked(Arc<AtomicU64>);

impl Walked {
    /// The bytes so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Goes before a walk over records. Where the next record begins is known only when the header of this one has come from
/// memory, so the walk alone would wait for every single header. A byte of each line of the stretch to come, which the
/// processor fetches side by side, is there sooner.
#[derive(Debug, Clone)]
pub(crate) struct Ahead<'a> {
    bytes: &'a [u8],
    /// Where `bytes` begin in the file.
    start: u64,
    /// Up to where the file has been read ahead.
    fetched: u64,
    /// Records since then.
    passed: usize,
    walked: Walked,
}

/// Bytes that are read ahead at a time; they stay in the nearest caches until the walk has passed them.
const AHEAD: usize = 16 << 10;
/// Where fewer records than that are in such a stretch, most of its lines needn't be seen.
const FEW: usize = AHEAD / 1024;
/// Bytes of a line of cache.
const LINE: usize = 64;

impl<'a> Ahead<'a> {
    /// Goes before a walk over `bytes`, the first of which stands at `start` of the file.
    pub(crate) fn new(bytes: &'a [u8], start: u64, walked: &Walked) -> Self {
        Self {
            bytes,
            start,
            fetched: start,
            passed: FEW,
            walked: walked.clone(),
        }
    }

    /// The walk is about to come to the record at `position`.
    #[inline]
    pub(crate) fn reach(&mut self, position: u64) {
        self.passed += 1;
        if position + LINE as u64 > self.fetched {
            self.go_on(position);
        }
    }

    #[cold]
    fn go_on(&mut self, position: u64) {
        let from = position.max(self.fetched);
        let offset = usize::try_from(from - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(offset..).unwrap_or_default();
        if self.passed > FEW {
            fetch(rest.get(..AHEAD).unwrap_or(rest));
        }
        let end = self.start + self.bytes.len() as u64;
        let fetched = from + AHEAD as u64;
        let walked = fetched.min(end).saturating_sub(self.fetched);
        self.walked.0.fetch_add(walked, Ordering::Relaxed);
        self.fetched = fetched;
        self.passed = 0;
    }
}

/// Reads a byte of each line.
pub(crate) fn fetch(bytes: &[u8]) {
    let read = bytes.iter().step_by(LINE).fold(0, |sum, byte| sum ^ byte);
    std::hint::black_box(read);
}
