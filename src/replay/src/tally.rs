//! Counts over the records of a recording.

use rperf_perfdata::RecordAt;
use rperf_wire::{Endian, LostSamples, Record, RecordKind};

use crate::Diagnostics;

/// Kinds below this are counted in an array.
const COMMON_KINDS: usize = 128;

/// What is counted while records pass.
#[derive(Debug)]
pub(crate) struct Tally {
    kinds: [u64; COMMON_KINDS],
    /// Everything else. `kinds` and what follows from it is filled in by [`Tally::finish`].
    pub(crate) found: Diagnostics,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            kinds: [0; COMMON_KINDS],
            found: Diagnostics::default(),
        }
    }
}

impl Tally {
    /// A record of this kind.
    #[inline]
    pub(crate) fn count(&mut self, kind: RecordKind) {
        match self.kinds.get_mut(kind.0 as usize) {
            Some(count) => *count += 1,
            None => self.found.unknown_kinds += 1,
        }
        self.found.records += 1;
    }

    /// A LOST or LOST_SAMPLES record.
    pub(crate) fn lost(&mut self, at: &RecordAt<'_>, endian: Endian) {
        let found = &mut self.found;
        match Record::decode(&at.raw, endian) {
            Ok(Record::Lost(lost)) => {
                found.lost_chunks += 1;
                found.lost_records = found.lost_records.saturating_add(lost.lost);
            }
            Ok(Record::LostSamples(LostSamples { lost })) => {
                found.lost_samples = found.lost_samples.saturating_add(lost);
            }
            Ok(_) => {}
            Err(error) => found.bad_records.add(at.position, error),
        }
    }

    /// All that was found so far.
    pub(crate) fn finish(&self) -> Diagnostics {
        let kinds = (0..).map(RecordKind).zip(self.kinds);
        let kinds: Vec<_> = kinds.filter(|(_, count)| *count > 0).collect();
        let unnamed = kinds.iter().filter(|(kind, _)| kind.name().is_none());
        let unnamed: u64 = unnamed.map(|(_, count)| count).sum();
        let found = self.found.clone();
        Diagnostics {
            unknown_kinds: found.unknown_kinds + unnamed,
            kinds,
            ..found
        }
    }
}
