//! Guesses of record boundaries.

use rperf_wire::{RawRecord, RecordKind};

use super::chunk::ChunkScanner;

/// Alignment of records: the sizes of the kernel's and of perf's are multiples of it, but for COMPRESSED records, which are
/// unpacked before the scan.
const ALIGNMENT: usize = 8;
/// Number of bytes that are searched: records of the kernel and of perf are shorter than 64 KiB. If the search begins in a
/// longer record of simpleperf or in the trace data after a record, it may find nothing.
const SEARCHED: usize = 1 << 16;
/// Number of consecutive plausible records of a guess.
const CHAIN: usize = 16;

impl ChunkScanner<'_, '_> {
    /// Guesses the file offset of the first record at or after `from`; `None` if no record is found. Stack copies and trace data
    /// may contain anything, so the guess has to be verified: the records before it must end there (see [`super::join`]).
    pub(super) fn first_record(&self, from: u64) -> Option<u64> {
        let start = self.data.data_offset();
        if from == start {
            return Some(start);
        }
        // The first position where a record may begin.
        let first = start + (from - start).next_multiple_of(ALIGNMENT as u64);
        let rest = self.data.data_from(first);
        let mut candidates = (0..SEARCHED.min(rest.len())).step_by(ALIGNMENT);
        let is_start = |at: &usize| rest.get(*at..).is_some_and(|bytes| self.is_chain(bytes));
        Some(first + candidates.find(is_start)? as u64)
    }

    /// Whether `bytes` start with [`CHAIN`] plausible records, or consist of fewer.
    fn is_chain(&self, mut bytes: &[u8]) -> bool {
        for _ in 0..CHAIN {
            if bytes.is_empty() {
                break;
            }
            let Some((record, size)) = RawRecord::split(bytes, self.data.endian()) else {
                return false;
            };
            if record.kind.name().is_none() || size % ALIGNMENT != 0 {
                return false;
            }
            if record.kind == RecordKind::SAMPLE && self.events.sample_head(record.body).is_none() {
                return false;
            }
            bytes = bytes.get(size..).unwrap_or_default();
        }
        true
    }
}
