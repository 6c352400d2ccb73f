//! Recordings of up to 64 KB, truncated at every byte or every seventh: complete records are returned, and missing data
//! is reported.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use rperf_perfdata::{Error, FeatureId, FileFinding, PerfData};
use rperf_testkit::recording_candidates;

/// Maximum size of the recordings that are checked, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Files up to this size are truncated at every byte.
const MAX_EVERY_BYTE: usize = 12 << 10;
/// Larger files are truncated at multiples of this, which have every alignment to words and records.
const STEP: usize = 7;

/// What a complete recording has, to be compared with truncated ones.
struct CompleteRecording {
    is_pipe: bool,
    /// The end of the records.
    end: u64,
    /// The end of each record with its payload, as file offsets.
    record_ends: Vec<u64>,
    features: BTreeSet<FeatureId>,
}

impl CompleteRecording {
    /// `None` if `bytes` are not a recording, or if the recording is damaged.
    fn new(bytes: &[u8]) -> Option<Self> {
        let data = PerfData::parse(bytes).ok()?;
        let mut records = data.records();
        let mut record_ends = Vec::new();
        while let Some(record) = records.next() {
            record.ok()?;
            record_ends.push(records.position());
        }
        // Longer attrs lose no records or features. The file of a killed recorder is read to its end, wherever that is.
        let is_harmless = |finding: &FileFinding| {
            matches!(
                finding,
                FileFinding::AttrLarger { .. } | FileFinding::Unfinished
            )
        };
        data.findings().iter().all(is_harmless).then(|| Self {
            is_pipe: data.header().is_pipe(),
            end: records.position(),
            record_ends,
            features: data.features().present().collect(),
        })
    }

    /// Compares the truncated file with the complete one.
    fn check(&self, truncated: &[u8]) -> Result<(), String> {
        let length = truncated.len() as u64;
        let data = match PerfData::parse(truncated) {
            Ok(data) => data,
            Err(Error::Empty) if truncated.is_empty() => return Ok(()),
            // A digit: the message has an offset or a size.
            Err(error)
                if error
                    .to_string()
                    .contains(|char: char| char.is_ascii_digit()) =>
            {
                return Ok(());
            }
            Err(Error::NoAttrRecord) if self.is_pipe => return Ok(()),
            Err(error) => return Err(format!("no offset or size: {error}")),
        };
        let expected = self.record_ends.partition_point(|end| *end <= length);
        let last_end = expected
            .checked_sub(1)
            .map_or(data.data_offset(), |last| self.record_ends[last]);
        let (mut found, mut error) = (0, None);
        for record in data.records() {
            match record {
                Ok(_) => found += 1,
                Err(last) => error = Some(last),
            }
        }
        if found != expected {
            return Err(format!("{found} records of {expected}"));
        }
        let end = length.min(self.end);
        match error {
            None if last_end == end => {}
            Some(Error::Truncated { offset, need, have }) if offset == last_end && have < need => {}
            other => return Err(format!("ends with {other:?}, {last_end} of {end} bytes")),
        }
        // A pipe recording has no header with the size of the records and the table of features.
        if self.is_pipe {
            return Ok(());
        }
        self.check_findings(&data, length)
    }

    fn check_findings(&self, data: &PerfData<'_>, length: u64) -> Result<(), String> {
        let findings = data.findings();
        if length < self.end {
            let lost_bytes = findings.iter().find_map(|finding| match finding {
                FileFinding::DataTruncated { need, have, .. } => Some(need - have),
                // This finding has no number of lost bytes: any number is accepted.
                FileFinding::Unfinished => Some(self.end - length),
                _ => None,
            });
            return match lost_bytes {
                Some(lost) if lost == self.end - length => Ok(()),
                lost => Err(format!("{lost:?} bytes are reported as lost")),
            };
        }
        let present: BTreeSet<FeatureId> = data.features().present().collect();
        let lost_features: Vec<FeatureId> = self.features.difference(&present).copied().collect();
        let reported: usize = findings
            .iter()
            .map(|finding| match finding {
                FileFinding::FeatureTruncated { .. } => 1,
                FileFinding::FeatureTableTruncated { lost, .. } => *lost,
                _ => 0,
            })
            .sum();
        if reported == lost_features.len() {
            Ok(())
        } else {
            Err(format!("{lost_features:?} are lost, {findings:?}"))
        }
    }
}

#[test]
fn truncated_recordings_are_read_and_missing_bytes_counted() {
    let paths = recording_candidates(MAX_FILE_BYTES);
    let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = fs::read(path).expect("a file that was listed");
            let Some(complete) = CompleteRecording::new(&bytes) else {
                continue;
            };
            let step = if bytes.len() > MAX_EVERY_BYTE {
                STEP
            } else {
                1
            };
            for end in (0..bytes.len()).step_by(step) {
                if let Err(fault) = complete.check(&bytes[..end]) {
                    panic!("{} truncated at {end}: {fault}", path.display());
                }
            }
            checked.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    // If there are fewer, recordings are no longer found, or are wrongly skipped as damaged.
    assert!(checked.into_inner() >= 20, "recordings");
}
