//! Recordings of up to 64 KB, cut at every byte: the whole records are there, and what is missing is told.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use rperf_perfdata::{Error, FeatureId, Finding, PerfData};
use rperf_testkit::recordings;

/// Longer files are not cut, in bytes.
const MOST: u64 = 64 << 10;

/// What a recording holds, by where it stands.
struct Whole {
    is_pipe: bool,
    /// Where the records end, and why.
    end: u64,
    /// The end of each record with what belongs to it, from the file's start.
    borders: Vec<u64>,
    features: BTreeSet<FeatureId>,
}

impl Whole {
    /// `None` for what is no recording, or a damaged one.
    fn new(bytes: &[u8]) -> Option<Self> {
        let data = PerfData::parse(bytes).ok()?;
        let mut records = data.records();
        let mut borders = Vec::new();
        while let Some(record) = records.next() {
            record.ok()?;
            borders.push(records.position());
        }
        let sound =
            |finding: &Finding| matches!(finding, Finding::AttrLarger { .. } | Finding::Unfinished);
        data.findings().iter().all(sound).then(|| Self {
            is_pipe: data.header().is_pipe(),
            end: records.position(),
            borders,
            features: data.features().present().collect(),
        })
    }

    /// Holds what is left of the file against the whole of it.
    fn check(&self, cut: &[u8]) -> Result<(), String> {
        let length = cut.len() as u64;
        let data = match PerfData::parse(cut) {
            Ok(data) => data,
            Err(Error::Empty) if cut.is_empty() => return Ok(()),
            Err(error)
                if error
                    .to_string()
                    .contains(|char: char| char.is_ascii_digit()) =>
            {
                return Ok(());
            }
            Err(Error::NoAttrRecord) if self.is_pipe => return Ok(()),
            Err(error) => return Err(format!("no offset: {error}")),
        };
        let here = self.borders.partition_point(|border| *border <= length);
        let whole = here
            .checked_sub(1)
            .map_or(data.data_offset(), |last| self.borders[last]);
        let (mut found, mut error) = (0, None);
        for record in data.records() {
            match record {
                Ok(_) => found += 1,
                Err(end) => error = Some(end),
            }
        }
        if found != here {
            return Err(format!("{found} records of {here}"));
        }
        let end = length.min(self.end);
        match error {
            None if whole == end => {}
            Some(Error::Truncated { offset, need, have })
                if offset <= end && offset >= whole && have < need => {}
            other => return Err(format!("ends with {other:?}, {whole} of {end} bytes")),
        }
        if self.is_pipe {
            return Ok(());
        }
        self.check_findings(&data, length)
    }

    fn check_findings(&self, data: &PerfData<'_>, length: u64) -> Result<(), String> {
        let findings = data.findings();
        if length < self.end {
            let lost = findings.iter().find_map(|finding| match finding {
                Finding::DataCut { need, have, .. } => Some(need - have),
                Finding::Unfinished => Some(self.end - length),
                _ => None,
            });
            return match lost {
                Some(lost) if lost == self.end - length => Ok(()),
                lost => Err(format!("{lost:?} bytes lost")),
            };
        }
        let there: BTreeSet<FeatureId> = data.features().present().collect();
        let lost: Vec<FeatureId> = self.features.difference(&there).copied().collect();
        let told: usize = findings
            .iter()
            .map(|finding| match finding {
                Finding::FeatureCut { .. } => 1,
                Finding::FeatureTableCut { lost, .. } => *lost,
                _ => 0,
            })
            .sum();
        if told == lost.len() {
            Ok(())
        } else {
            Err(format!("{lost:?} are lost, {findings:?}"))
        }
    }
}

#[test]
fn what_a_cut_leaves_is_read_and_what_it_takes_is_counted() {
    let paths = recordings(MOST);
    let (next, checked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let bytes = fs::read(path).expect("a file that was listed");
            let Some(whole) = Whole::new(&bytes) else {
                continue;
            };
            for end in 0..bytes.len() {
                if let Err(what) = whole.check(&bytes[..end]) {
                    panic!("{} cut at {end}: {what}", path.display());
                }
            }
            checked.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    assert!(checked.into_inner() >= 20, "recordings");
}
