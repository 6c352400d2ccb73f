//! Counting of records by type.

use rperf_perfdata::RecordAt;
use rperf_wire::{Endian, LostSamples, Record, RecordKind};

use crate::{BadRecord, Diagnostics};

/// Types below this number are counted in an array.
const COMMON_KINDS: usize = 128;

/// Counts updated for each record.
#[derive(Debug)]
pub(crate) struct RecordCounter {
    /// Number of records by type.
    kinds: [u64; COMMON_KINDS],
    /// All other statistics. Here [`Diagnostics::kinds`] is empty, and [`Diagnostics::unknown_kinds`] lacks unknown types
    /// below [`COMMON_KINDS`]; the result of [`RecordCounter::finish`] has both.
    pub(crate) statistics: Diagnostics,
}

impl Default for RecordCounter {
    fn default() -> Self {
        Self {
            kinds: [0; COMMON_KINDS],
            statistics: Diagnostics::default(),
        }
    }
}

impl RecordCounter {
    /// Counts a record of this type.
    #[inline]
    pub(crate) fn count(&mut self, kind: RecordKind) {
        match self.kinds.get_mut(kind.0 as usize) {
            Some(count) => *count += 1,
            // Types from `COMMON_KINDS` on are counted only if they are unknown. The known ones are simpleperf's own.
            None => self.statistics.unknown_kinds += u64::from(kind.name().is_none()),
        }
        self.statistics.records += 1;
    }

    /// Counts `count` samples.
    pub(crate) fn count_samples(&mut self, count: u64) {
        if let Some(samples) = self.kinds.get_mut(RecordKind::SAMPLE.0 as usize) {
            *samples += count;
        }
        self.statistics.records += count;
    }

    /// Adds the losses that a LOST or LOST_SAMPLES record reports. Adds a record of the kernel that cannot be decoded to
    /// [`Diagnostics::bad_records`], except READ records: the code that reads them counts those that cannot be decoded.
    /// [`Diagnostics::records`] is left to [`RecordCounter::count`].
    pub(crate) fn check_kernel_record(&mut self, at: &RecordAt<'_>, endian: Endian) {
        if at.raw.kind == RecordKind::READ {
            return;
        }
        let statistics = &mut self.statistics;
        match Record::decode(&at.raw, endian) {
            Ok(Record::Lost(lost)) => {
                statistics.lost_chunks += 1;
                statistics.lost_records = statistics.lost_records.saturating_add(lost.lost);
            }
            Ok(Record::LostSamples(LostSamples { lost })) => {
                statistics.lost_samples = statistics.lost_samples.saturating_add(lost);
            }
            Ok(_) => {}
            Err(error) => statistics.bad_records.add(BadRecord {
                offset: at.position,
                kind: at.raw.kind,
                error,
            }),
        }
    }

    /// Adds the counts of a later part of the recording. The other statistics, such as [`Diagnostics::end`], are set after all
    /// parts are merged.
    pub(crate) fn merge(&mut self, later: Self) {
        let kinds = self.kinds.iter_mut().zip(later.kinds);
        kinds.for_each(|(sum, count)| *sum += count);
        let (statistics, later) = (&mut self.statistics, later.statistics);
        statistics.records += later.records;
        statistics.lost_chunks += later.lost_chunks;
        statistics.lost_records = statistics.lost_records.saturating_add(later.lost_records);
        statistics.lost_samples = statistics.lost_samples.saturating_add(later.lost_samples);
        statistics.unknown_kinds += later.unknown_kinds;
        statistics.unknown_ids += later.unknown_ids;
        statistics.bad_records.merge(later.bad_records);
    }

    /// All statistics so far.
    pub(crate) fn finish(&self) -> Diagnostics {
        let kinds = (0..).map(RecordKind).zip(self.kinds);
        let kinds: Vec<_> = kinds.filter(|(_, count)| *count > 0).collect();
        let unknown = kinds.iter().filter(|(kind, _)| kind.name().is_none());
        let unknown: u64 = unknown.map(|(_, count)| count).sum();
        let statistics = self.statistics.clone();
        Diagnostics {
            unknown_kinds: statistics.unknown_kinds + unknown,
            kinds,
            ..statistics
        }
    }
}
