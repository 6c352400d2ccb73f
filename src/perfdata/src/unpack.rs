//! Unpacking the records of a recording that are compressed, or spread over a directory with one file
//! per recording thread.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::thread;

use rperf_wire::{Endian, RecordKind};

use crate::decode_ahead::DecodeAhead;
use crate::merged_files::{MergedFiles, MergedRecord, RecordFile};
use crate::{Decompressor, Error, PerfData, RecordAt, Records};

/// Unpacked bytes are buffered, and written as soon as there are at least this many. The rest is written at the end.
const CHUNK: usize = 1 << 20;

/// Counts and problems that [`PerfData::unpack`] found while it wrote the records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnpackSummary {
    /// The first error in any of the files. Each error ended the records of its file.
    pub first_error: Option<Error>,
    /// Number of COMPRESSED records, whose contents were written instead.
    pub compressed: u64,
    /// Number of COMPRESSED2 records, likewise replaced.
    pub compressed2: u64,
}

impl UnpackSummary {
    fn count(&mut self, kind: RecordKind) {
        match kind {
            RecordKind::COMPRESSED => self.compressed += 1,
            RecordKind::COMPRESSED2 => self.compressed2 += 1,
            _ => {}
        }
    }
}

impl<'a> PerfData<'a> {
    /// Whether records are compressed: the header's features tell it. If there are no features because the recorder was
    /// killed, the records are searched for compressed ones.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        let has_no_features = self.features().present().next().is_none();
        self.features().compressed().is_some()
            || (has_no_features
                && self
                    .records()
                    .flatten()
                    .any(|record| Decompressor::is_compressed(record.raw.kind)))
    }

    /// Writes all records decompressed and in one sequence: as in perf, 2 MiB of this file, then 2 MiB of each of the `parts`
    /// (the other files of a directory), and so on, until all have ended. Each file has a separate compressed stream, and ends at
    /// its first error.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn unpack(&self, parts: &[&'a [u8]], to: &mut impl Write) -> io::Result<UnpackSummary> {
        let one_thread = NonZeroUsize::MIN;
        self.unpack_on(one_thread, parts, to)
    }

    /// Like [`PerfData::unpack`]; zstd frames that are complete in one record, such as rperf's, are decoded on up to
    /// `threads` threads.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn unpack_on(
        &self,
        threads: NonZeroUsize,
        parts: &[&'a [u8]],
        to: &mut impl Write,
    ) -> io::Result<UnpackSummary> {
        let own = RecordFile::new(self.records(), self.data.len());
        let others = parts.iter().map(|bytes| {
            let records = Records::new(bytes, 0, self.endian());
            RecordFile::new(records, bytes.len())
        });
        let files: Vec<RecordFile<'a>> = std::iter::once(own).chain(others).collect();
        let unpacker = Unpacker::new(&files, self.endian());
        let merged = MergedFiles::new(files);
        if threads.get() == 1 {
            let ahead = None;
            return unpacker.run(merged, ahead, to);
        }
        thread::scope(|scope| {
            let ahead = DecodeAhead::start(scope, threads, merged.clone());
            unpacker.run(merged, Some(ahead), to)
        })
    }

    /// Returns the same recording with other records: `records`, which [`PerfData::unpack`] wrote, replace those of the file. The
    /// positions of records are then [`PerfData::data_offset`] plus their offset in `records`.
    #[must_use]
    pub fn with_records(mut self, records: &'a [u8], summary: UnpackSummary) -> Self {
        self.data = records;
        self.unpacked = Some(summary);
        self
    }

    /// The summary of unpacked records; `None` if the records are those of the file.
    #[must_use]
    pub fn unpacked(&self) -> Option<&UnpackSummary> {
        self.unpacked.as_ref()
    }

    /// The first error in any of the unpacked files, which [`PerfData::records`] doesn't report; `None` if there was no error,
    /// or if the records are those of the file.
    #[must_use]
    pub fn unpack_error(&self) -> Option<&Error> {
        self.unpacked.as_ref()?.first_error.as_ref()
    }
}

/// Decompresses and merges the records of several files.
struct Unpacker {
    /// By file.
    decompressors: Vec<Decompressor>,
    /// Unpacked records that are not written yet.
    out: Vec<u8>,
    summary: UnpackSummary,
}

impl Unpacker {
    fn new(files: &[RecordFile<'_>], endian: Endian) -> Self {
        let decompressor =
            |file: &RecordFile<'_>| Decompressor::with_input_size(endian, file.bytes);
        Self {
            decompressors: files.iter().map(decompressor).collect(),
            out: Vec::new(),
            summary: UnpackSummary::default(),
        }
    }

    fn run<'a>(
        mut self,
        mut merged: MergedFiles<'a>,
        mut ahead: Option<DecodeAhead<'a>>,
        to: &mut impl Write,
    ) -> io::Result<UnpackSummary> {
        while let Some(MergedRecord {
            file,
            position_after,
            record,
        }) = merged.next()
        {
            let result = match record {
                Some(record) => record.and_then(|record| {
                    let decoded = ahead.as_mut().and_then(|ahead| ahead.take(file, &record));
                    let result = self.push(file, &record, decoded.as_deref());
                    if let (Some(ahead), Some(decoded)) = (&mut ahead, decoded) {
                        ahead.reuse(decoded);
                    }
                    result
                }),
                // The end of the file.
                None => self.finish(file, position_after),
            };
            if let Err(error) = result {
                merged.end_file(file);
                // Writes the records that were decoded before the error. A second error is ignored.
                drop(self.finish(file, position_after));
                self.summary
                    .first_error
                    .get_or_insert(with_part_number(error, file));
            }
            if self.out.len() >= CHUNK {
                to.write_all(&self.out)?;
                self.out.clear();
            }
        }
        to.write_all(&self.out)?;
        Ok(self.summary)
    }

    fn push(
        &mut self,
        file: usize,
        record: &RecordAt<'_>,
        decoded: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.summary.count(record.raw.kind);
        let decompressor = self.decompressors.get_mut(file);
        decompressor.map_or(Ok(()), |decompressor| {
            decompressor.push_decoded(record, decoded, &mut self.out)
        })
    }

    fn finish(&mut self, file: usize, position: u64) -> Result<(), Error> {
        let decompressor = self.decompressors.get_mut(file);
        decompressor.map_or(Ok(()), |decompressor| {
            decompressor.finish(position, &mut self.out)
        })
    }
}

/// Adds the number of the part to its error. File 0 is the one with the header, the others are parts.
fn with_part_number(error: Error, file: usize) -> Error {
    match u32::try_from(file) {
        Ok(0) | Err(_) => error,
        Ok(part) => Error::Part {
            part,
            source: Box::new(error),
        },
    }
}
