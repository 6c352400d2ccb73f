//! What went wrong without stopping the reading, and what was lost at the recording.

use rperf_wire::RecordKind;

/// Records that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bad {
    /// How many.
    pub count: u64,
    /// File offset of the first and what is wrong with it.
    pub first: Option<(u64, rperf_wire::DecodeError)>,
}

impl Bad {
    /// Takes note of one more.
    pub fn add(&mut self, offset: u64, error: rperf_wire::DecodeError) {
        self.count += 1;
        if self.first.as_ref().is_none_or(|(known, _)| offset < *known) {
            self.first = Some((offset, error));
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        let count = self.count + other.count;
        if let Some((offset, error)) = other.first {
            self.add(offset, error);
        }
        self.count = count;
    }
}

/// What there is to say about a recording besides its samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    /// Records of any kind.
    pub records: u64,
    /// Records by kind, those that occur, by number.
    pub kinds: Vec<(RecordKind, u64)>,
    /// LOST records: each a time that a ring was full (perf's "chunks").
    pub lost_chunks: u64,
    /// Records that these say were lost.
    pub lost_records: u64,
    /// Samples that LOST_SAMPLES records say were lost (perf's "Total Lost Samples").
    pub lost_samples: u64,
    /// Records older than what perf would have delivered by then (perf's "out of order events").
    pub out_of_order: u64,
    /// Records of kinds that this version has no name for.
    pub unknown_kinds: u64,
    /// Samples of an event id that the header does not know; they are skipped.
    pub unknown_ids: u64,
    /// Records of processes and mappings that could not be decoded.
    pub bad_records: Bad,
    /// Samples that could not be decoded in the last run over them.
    pub bad_samples: Bad,
    /// Why reading stopped before the end of the data.
    pub end: Option<rperf_perfdata::Error>,
}

impl Diagnostics {
    /// How many records of this kind there are.
    #[must_use]
    pub fn count(&self, kind: RecordKind) -> u64 {
        let found = self.kinds.binary_search_by_key(&kind, |(kind, _)| *kind);
        found
            .ok()
            .and_then(|at| self.kinds.get(at))
            .map_or(0, |(_, count)| *count)
    }
}
