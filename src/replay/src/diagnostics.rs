//! Statistics of a recording: records, losses, damage.

use rperf_wire::RecordKind;

/// A record that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    /// Its file offset.
    pub offset: u64,
    /// Its type.
    pub kind: RecordKind,
    /// The error.
    pub error: rperf_wire::DecodeError,
}

/// Records that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecodeErrors {
    /// The number of these records.
    pub count: u64,
    /// The first one in the file.
    pub first: Option<BadRecord>,
}

impl DecodeErrors {
    /// Adds a record.
    pub fn add(&mut self, bad: BadRecord) {
        self.count += 1;
        let first = self.first.as_ref();
        if first.is_none_or(|first| bad.offset < first.offset) {
            self.first = Some(bad);
        }
    }

    /// Adds the records of another part of the recording.
    pub fn merge(&mut self, other: Self) {
        // `add` counts only the first of the other records.
        let count = self.count + other.count;
        if let Some(bad) = other.first {
            self.add(bad);
        }
        self.count = count;
    }
}

/// Statistics and problems of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Number of records.
    pub records: u64,
    /// Number of records by type, sorted by type, for types below 128 that occur. Higher types are those of
    /// simpleperf, or unknown.
    pub kinds: Vec<(RecordKind, u64)>,
    /// Number of LOST records: the kernel writes one each time that a ring was full (perf's "chunks").
    pub lost_chunks: u64,
    /// Number of records lost, according to LOST records.
    pub lost_records: u64,
    /// Number of samples lost, according to LOST_SAMPLES records (perf's "Total Lost Samples").
    pub lost_samples: u64,
    /// Number of records that perf would deliver after later ones (perf's "out of order events").
    /// 0 if a ring was written backward (`--overwrite`): its records are read from the newest to the oldest.
    pub out_of_order: u64,
    /// Number of records of unknown types.
    pub unknown_kinds: u64,
    /// Number of samples, and of counter values in samples (`:S`), that were skipped because their event id is unknown.
    pub unknown_ids: u64,
    /// Records other than samples that could not be decoded: of the types that change the World (mappings, threads) or report
    /// losses, and of those that the command reads itself, such as STAT.
    pub bad_records: DecodeErrors,
    /// Samples that could not be decoded: in the last pass over a file, or in a stream so far.
    pub bad_samples: DecodeErrors,
    /// Why reading stopped before the end of the data.
    pub end: Option<rperf_perfdata::Error>,
}

impl Diagnostics {
    /// Number of records of this type; 0 for types from 128 on.
    #[must_use]
    pub fn count(&self, kind: RecordKind) -> u64 {
        let index = self.kinds.binary_search_by_key(&kind, |(kind, _)| *kind);
        index
            .ok()
            .and_then(|at| self.kinds.get(at))
            .map_or(0, |(_, count)| *count)
    }
}
