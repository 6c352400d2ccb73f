//! The records of a recording that does not hold them in one run: compressed ones, and those of a
//! directory with one file for each thread that recorded.

use std::io::{self, Write};

use crate::{Error, Expander, PerfData, Records};

/// Bytes that are read of one part before it is the next one's turn, as in perf. It decides between
/// records of equal time.
const TURN: u64 = 2 << 20;
/// Bytes gathered before they are written.
const CHUNK: usize = 1 << 20;

impl<'a> PerfData<'a> {
    /// Whether records are compressed. The header says so; where it says nothing (the recorder was killed)
    /// the records are looked at.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        let nothing_said = self.features().present().next().is_none();
        self.features().compressed().is_some()
            || (nothing_said
                && self
                    .records()
                    .flatten()
                    .any(|record| Expander::wants(record.raw.kind)))
    }

    /// Writes all records in one run, none of them compressed: those of this file, and those of the
    /// `parts` of a directory in turns with them. Each part has a compressed stream of its own.
    ///
    /// What cannot be read ends its part; the first such cause is returned.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn unpack(&self, parts: &[&'a [u8]], to: &mut impl Write) -> io::Result<Option<Error>> {
        let own = Part::new(self.records(), self.data.len(), 0);
        let others = (1..).zip(parts);
        let others = others.map(|(number, bytes)| {
            let records = Records::new(bytes, 0, self.endian());
            Part::new(records, bytes.len(), number)
        });
        let mut parts: Vec<Part<'a>> = std::iter::once(own).chain(others).collect();
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

    /// The same recording with records that [`PerfData::unpack`] has written. Offsets of records count as
    /// if they had always stood in one run. `end` is why there are not more of them.
    #[must_use]
    pub fn with_records(mut self, records: &'a [u8], end: Option<Error>) -> Self {
        self.data = records;
        self.unpacked = true;
        self.end = end;
        self
    }

    /// Why there are no more records than [`PerfData::records`] gives, where that does not say it itself.
    #[must_use]
    pub fn end(&self) -> Option<&Error> {
        self.end.as_ref()
    }
}

/// One file of records.
struct Part<'a> {
    records: Records<'a>,
    expander: Expander,
    /// 0 for the file with the header.
    number: u32,
    ended: bool,
}

impl<'a> Part<'a> {
    fn new(records: Records<'a>, bytes: usize, number: u32) -> Self {
        Self {
            expander: Expander::with_input(records.endian(), bytes as u64),
            records,
            number,
            ended: false,
        }
    }

    /// Takes some records, or all that are left.
    fn turn(&mut self, out: &mut Vec<u8>, to: &mut impl Write) -> io::Result<Result<(), Error>> {
        let end = self.records.position().saturating_add(TURN);
        while self.records.position() < end {
            let Some(record) = self.records.next() else {
                self.ended = true;
                let finished = self.expander.finish(self.records.position(), out);
                return Ok(finished.map_err(|error| self.name(error)));
            };
            let taken = record.and_then(|record| self.expander.push(&record, out));
            if let Err(error) = taken {
                self.ended = true;
                // What was read before the damage is given; that it ends there is known already.
                drop(self.expander.finish(self.records.position(), out));
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
