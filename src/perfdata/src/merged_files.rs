//! The order in which the records of several files are merged.

use rperf_wire::Endian;

use crate::{Error, RecordAt, Records};

/// Bytes read from one file before switching to the next, as in perf. Determines the order of
/// records with equal times.
const BYTES_PER_TURN: u64 = 2 << 20;

/// One file of records.
#[derive(Debug, Clone)]
pub(crate) struct RecordFile<'a> {
    records: Records<'a>,
    /// Size of the records in bytes.
    pub(crate) bytes: u64,
    ended: bool,
}

impl<'a> RecordFile<'a> {
    pub(crate) fn new(records: Records<'a>, bytes: usize) -> Self {
        Self {
            records,
            bytes: bytes as u64,
            ended: false,
        }
    }
}

/// A record in the merged order, or the end of a file.
pub(crate) struct MergedRecord<'a> {
    /// The index of the file, in the order given to [`MergedFiles::new`].
    pub(crate) file: usize,
    /// The position in the file after the record, or at the end of the file; meaningless if `record` is an error.
    pub(crate) position_after: u64,
    /// `None` at the end of the file. A file that [`MergedFiles::end_file`] ended has no such item.
    pub(crate) record: Option<Result<RecordAt<'a>, Error>>,
}

/// The records of several files in one sequence: [`BYTES_PER_TURN`] of one file, then of the next file, until all have ended.
#[derive(Debug, Clone)]
pub(crate) struct MergedFiles<'a> {
    files: Vec<RecordFile<'a>>,
    /// The index of the file that is read now.
    current: usize,
    /// The position where the current file's turn ends; `None` before the turn begins.
    until: Option<u64>,
}

impl<'a> MergedFiles<'a> {
    /// The records of `files`.
    pub(crate) fn new(files: Vec<RecordFile<'a>>) -> Self {
        Self {
            files,
            current: 0,
            until: None,
        }
    }

    /// The byte order of the records; `None` without files.
    pub(crate) fn endian(&self) -> Option<Endian> {
        self.files.first().map(|file| file.records.endian())
    }

    /// Ends the file of this index early: no more of its records are returned.
    pub(crate) fn end_file(&mut self, index: usize) {
        if let Some(file) = self.files.get_mut(index) {
            file.ended = true;
        }
    }
}

impl<'a> Iterator for MergedFiles<'a> {
    type Item = MergedRecord<'a>;

    fn next(&mut self) -> Option<MergedRecord<'a>> {
        // One more than the number of files: the current file is tried again if all others have ended.
        for _ in 0..=self.files.len() {
            let file = self.files.get_mut(self.current)?;
            let position = file.records.position();
            let until = *self
                .until
                .get_or_insert(position.saturating_add(BYTES_PER_TURN));
            if !file.ended && position < until {
                let record = file.records.next();
                file.ended = record.is_none();
                return Some(MergedRecord {
                    file: self.current,
                    position_after: file.records.position(),
                    record,
                });
            }
            self.until = None;
            self.current = (self.current + 1) % self.files.len();
        }
        None
    }
}
