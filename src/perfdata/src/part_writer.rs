//! Writing the records of a recording without anything else: the data section of a file, or a file of a `perf.data` directory.

use std::io;

use rperf_wire::Endian;

use crate::header::Section;
use crate::{Output, Records, WriteError};

/// Writes a part of a recording: records, without header and features. If a write fails, often because the disk is full,
/// [`PartWriter::finish`] ends the file at a record boundary.
#[derive(Debug)]
pub struct PartWriter<W> {
    pub(crate) output: W,
    /// The section with the records.
    pub(crate) section: Section,
    pub(crate) endian: Endian,
    /// Whether a write failed.
    pub(crate) ended: bool,
}

impl<W: Output> PartWriter<W> {
    /// Creates a writer of records in this machine's byte order at the start of `output`.
    #[must_use]
    pub fn new(output: W) -> Self {
        Self {
            output,
            section: Section::default(),
            endian: Endian::NATIVE,
            ended: false,
        }
    }

    /// Size of the file up to the end of the last complete record, in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.section.end()
    }

    /// Appends complete records, each followed by its payload, if any. They are one write, unless the output accepts
    /// only a part of it.
    ///
    /// # Errors
    /// [`WriteError::Data`] if they could not all be written: [`PartWriter::finish`] truncates the file after the last
    /// complete record. Later calls fail with [`WriteError::Ended`].
    pub fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        self.check()?;
        if let Err((written, source)) = self.put(records) {
            let written_records = records.get(..written).unwrap_or(records);
            let complete = complete_bytes(written_records, self.endian);
            return Err(self.end(written_records.len() as u64, complete, source));
        }
        self.section.size += records.len() as u64;
        Ok(())
    }

    /// Appends a record and the pieces of its payload.
    ///
    /// # Errors
    /// [`WriteError::Data`] if they could not all be written: [`PartWriter::finish`] truncates the file before the record.
    /// Later calls fail with [`WriteError::Ended`].
    pub fn write_with_payload(
        &mut self,
        record: &[u8],
        payload: &[&[u8]],
    ) -> Result<(), WriteError> {
        self.check()?;
        let mut total = 0;
        for piece in std::iter::once(&record).chain(payload) {
            if let Err((written, source)) = self.put(piece) {
                // The record is only complete with its whole payload.
                let complete = 0;
                return Err(self.end(total + written as u64, complete, source));
            }
            total += piece.len() as u64;
        }
        self.section.size += total;
        Ok(())
    }

    /// Fails if an earlier write failed.
    fn check(&self) -> Result<(), WriteError> {
        match self.ended {
            true => Err(WriteError::Ended {
                offset: self.file_bytes(),
            }),
            false => Ok(()),
        }
    }

    /// Writes all bytes, or returns how many were written and the error.
    fn put(&mut self, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let error = match self.output.write(rest) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            return Err((bytes.len() - rest.len(), error));
        }
        Ok(())
    }

    /// Ends the data after a partial write of `written` bytes, of which `complete` bytes are complete
    /// records.
    fn end(&mut self, written: u64, complete: u64, source: io::Error) -> WriteError {
        let offset = self.file_bytes() + written;
        self.section.size += complete;
        self.ended = true;
        WriteError::Data {
            offset,
            kept: self.section.size,
            source,
        }
    }

    /// Flushes the file; after a failed write, also truncates it after the last complete record.
    ///
    /// # Errors
    /// The system's error.
    pub fn finish(mut self) -> io::Result<W> {
        if self.ended {
            self.output.set_size(self.section.end())?;
        }
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Number of bytes up to the end of the last complete record in `bytes`. A record is complete with its whole payload.
fn complete_bytes(bytes: &[u8], endian: Endian) -> u64 {
    let mut records = Records::new(bytes, 0, endian);
    while records.next_valid().is_some() {}
    records.position()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::RecordKind;
    use std::io::{Cursor, Seek, SeekFrom, Write};

    /// A disk of limited capacity: its content, and the capacity in bytes.
    struct SmallDisk(Cursor<Vec<u8>>, usize);

    impl Write for SmallDisk {
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

    impl Seek for SmallDisk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    impl Output for SmallDisk {
        fn set_size(&mut self, size: u64) -> io::Result<()> {
            self.0.set_size(size)
        }
    }

    #[test]
    fn a_part_ends_after_its_last_complete_record() {
        let mut record = vec![0; 16];
        record[6] = 16;
        let mut part = PartWriter::new(SmallDisk(Cursor::default(), 40));
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
        let SmallDisk(bytes, _) = part.finish().unwrap();
        assert_eq!(bytes.into_inner(), record.repeat(2));
    }

    #[test]
    fn a_record_with_an_incomplete_payload_is_dropped() {
        let mut auxtrace = vec![0; 48];
        auxtrace[..4].copy_from_slice(&RecordKind::AUXTRACE.0.to_ne_bytes());
        auxtrace[6..8].copy_from_slice(&48_u16.to_ne_bytes());
        auxtrace[8..16].copy_from_slice(&16_u64.to_ne_bytes());
        auxtrace.extend([0xff; 16]);
        let mut part = PartWriter::new(SmallDisk(Cursor::default(), 60));
        let full = part.write_data(&auxtrace);
        assert!(matches!(
            full,
            Err(WriteError::Data {
                offset: 60,
                kept: 0,
                ..
            })
        ));
        let SmallDisk(bytes, _) = part.finish().unwrap();
        assert!(bytes.into_inner().is_empty());
    }
}
