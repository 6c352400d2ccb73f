//! Writing records one behind the other: the data of a file, or a part of a directory, which holds nothing else.

use std::io;

use rperf_wire::{Endian, RawRecord};

use crate::header::Section;
use crate::{Output, WriteError};

/// Writes a file of records alone. A full disk ends it at a record's border.
#[derive(Debug)]
pub struct PartWriter<W> {
    pub(crate) output: W,
    /// Where the records are.
    pub(crate) section: Section,
    pub(crate) endian: Endian,
    /// A write failed, and the data were cut.
    pub(crate) ended: bool,
}

impl<W: Output> PartWriter<W> {
    /// Records of this machine's byte order, from the start of `output` on.
    #[must_use]
    pub fn new(output: W) -> Self {
        Self {
            output,
            section: Section::default(),
            endian: Endian::NATIVE,
            ended: false,
        }
    }

    /// Bytes up to the end of the last whole record, from the start of the file on.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.section.end()
    }

    /// Appends whole records with one write.
    ///
    /// # Errors
    /// [`WriteError::Data`] when not all of them could be written: what is behind the last whole record does not
    /// count, and no more is taken.
    pub fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        self.check()?;
        if let Err((written, source)) = self.put(records) {
            let written = records.get(..written).unwrap_or(records);
            let whole = whole_records(written, self.endian) as u64;
            return Err(self.end((written.len() as u64, whole), source));
        }
        self.section.size += records.len() as u64;
        Ok(())
    }

    /// Appends a record and the bytes that follow it and belong to it, in pieces.
    ///
    /// # Errors
    /// [`WriteError::Data`] when not all of them could be written: nothing of it counts then, and no more is taken.
    pub fn write_followed(&mut self, record: &[u8], payload: &[&[u8]]) -> Result<(), WriteError> {
        self.check()?;
        let mut before = 0;
        for piece in std::iter::once(&record).chain(payload) {
            if let Err((written, source)) = self.put(piece) {
                return Err(self.end((before + written as u64, 0), source));
            }
            before += piece.len() as u64;
        }
        self.section.size += before;
        Ok(())
    }

    fn check(&self) -> Result<(), WriteError> {
        match self.ended {
            true => Err(WriteError::Ended {
                offset: self.file_bytes(),
            }),
            false => Ok(()),
        }
    }

    /// Writes all of it, or tells how much was written and why no more.
    fn put(&mut self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let stopped = match self.output.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return Err((bytes.len() - rest.len(), stopped));
        }
        Ok(())
    }

    /// Ends the data where so many bytes were written behind them, of which so many are whole records.
    fn end(&mut self, (written, whole): (u64, u64), source: io::Error) -> WriteError {
        let offset = self.file_bytes() + written;
        self.section.size += whole;
        self.ended = true;
        WriteError::Data {
            offset,
            kept: self.section.size,
            source,
        }
    }

    /// Cuts off what is behind the last whole record.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<W> {
        if self.ended {
            self.output.set_size(self.section.end())?;
        }
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Bytes of `bytes`, which begins with a record, up to the end of the last whole one.
fn whole_records(bytes: &[u8], endian: Endian) -> usize {
    RawRecord::all(bytes, endian)
        .map(|(_, record)| record.len())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Seek, SeekFrom, Write};

    /// A disk with room for so many bytes.
    struct Small(Cursor<Vec<u8>>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.1 - self.0.get_ref().len();
            match room.min(bytes.len()) {
                0 => Err(io::ErrorKind::StorageFull.into()),
                count => self.0.write(&bytes[..count]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Small {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    impl Output for Small {
        fn set_size(&mut self, size: u64) -> io::Result<()> {
            self.0.set_size(size)
        }
    }

    #[test]
    fn a_part_ends_behind_its_last_whole_record() {
        let mut record = vec![0; 16];
        record[6] = 16;
        let mut part = PartWriter::new(Small(Cursor::default(), 40));
        part.write_data(&record).unwrap();
        let full = part.write_data(&record.repeat(2));
        assert!(matches!(
            full,
            Err(WriteError::Data {
                offset: 40,
                kept: 32,
                ..
            })
        ));
        let after = part.write_data(&record);
        assert!(matches!(after, Err(WriteError::Ended { offset: 32 })));
        let Small(bytes, _) = part.finish().unwrap();
        assert_eq!(bytes.into_inner(), record.repeat(2));
    }
}
