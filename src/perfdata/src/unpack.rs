//! Merging the records of a recording that are compressed, or spread over a directory with one file
//! per recording thread.

use std::io::{self, Write};

use crate::{Decompressor, Error, PerfData, Records};

/// Bytes read from one file before switching to the next, as in perf. Determines the order of
/// records with equal times.
const BYTES_PER_TURN: u64 = 2 << 20;
/// Size of the write buffer.
const CHUNK: usize = 1 << 20;

impl<'a> PerfData<'a> {
    /// Whether records are compressed: from the header, or if that doesn't say (the recorder was
    /// killed), from the records.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        let nothing_said = self.features().present().next().is_none();
        self.features().compressed().is_some()
            || (nothing_said
                && self
                    .records()
                    .flatten()
                    .any(|record| Decompressor::is_compressed(record.raw.kind)))
    }

    /// Writes all records decompressed and in one sequence: those of this file alternating with
    /// those of the `parts` of a directory. Each part has a separate compressed stream.
    ///
    /// A part ends at its first error; the first error of all parts is returned.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn unpack(&self, parts: &[&'a [u8]], to: &mut impl Write) -> io::Result<Option<Error>> {
        let own = RecordFile::new(self.records(), self.data.len(), 0);
        let others = (1..).zip(parts);
        let others = others.map(|(number, bytes)| {
            let records = Records::new(bytes, 0, self.endian());
            RecordFile::new(records, bytes.len(), number)
        });
        let mut parts: Vec<RecordFile<'a>> = std::iter::once(own).chain(others).collect();
        let mut out = Vec::new();
        let mut cause = None;
        while parts.iter().any(|part| !part.ended) {
            for part in parts.iter_mut().filter(|part| !part.ended) {
                if let Err(error) = part.turn(&mut out, to)? {
                    cause.get_or_insert(error);
                }
            }
        }
        to.write_all(&out)?;
        Ok(cause)
    }

    /// Returns the same recording with records written by [`PerfData::unpack`]. Offsets of records
    /// refer to that sequence. `end` is the error that ended it.
    #[must_use]
    pub fn with_records(mut self, records: &'a [u8], end: Option<Error>) -> Self {
        self.data = records;
        self.unpacked = true;
        self.end = end;
        self
    }

    /// The error that ended the unpacked records, which [`PerfData::records`] doesn't report.
    #[must_use]
    pub fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }
}

/// One file of records.
struct RecordFile<'a> {
    records: Records<'a>,
    decompressor: Decompressor,
    /// 0 for the file with the header, otherwise the number of the part.
    number: u32,
    ended: bool,
}

impl<'a> RecordFile<'a> {
    fn new(records: Records<'a>, bytes: usize, number: u32) -> Self {
        Self {
            decompressor: Decompressor::with_input(records.endian(), bytes as u64),
            records,
            number,
            ended: false,
        }
    }

    /// Copies a block of records, or all remaining ones.
    fn turn(&mut self, out: &mut Vec<u8>, to: &mut impl Write) -> io::Result<Result<(), Error>> {
        let end = self.records.position().saturating_add(BYTES_PER_TURN);
        while self.records.position() < end {
            let Some(record) = self.records.next() else {
                self.ended = true;
                let finished = self.decompressor.finish(self.records.position(), out);
                return Ok(finished.map_err(|error| self.name(error)));
            };
            let taken = record.and_then(|record| self.decompressor.push(&record, out));
            if let Err(error) = taken {
                self.ended = true;
                // Output the remaining records; the error is already known.
                drop(self.decompressor.finish(self.records.position(), out));
                return Ok(Err(self.name(error)));
            }
            if out.len() >= CHUNK {
                to.write_all(out)?;
                out.clear();
            }
        }
        Ok(Ok(()))
    }

    fn name(&self, error: Error) -> Error {
        match self.number {
            0 => error,
            part => Error::Part {
                part,
                source: Box::new(error),
            },
        }
    }
}
