//! A recording read while it is still being written: records of pipe mode out of a stream.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

use rperf_wire::{Endian, RawRecord, RecordHeader};

use crate::records::{has_payload, payload_size};
use crate::{Error, FileHeader, PipeHead, RecordAt, Records};

/// Where a stream comes from.
pub trait Source: Read {
    /// Whether a read would return at once. It may err on the side of `false`: then what has come is
    /// handed on before more is waited for.
    fn is_ready(&self) -> bool;
}

/// Bytes in memory, for tests and for streams that were stored.
impl Source for &[u8] {
    fn is_ready(&self) -> bool {
        !self.is_empty()
    }
}

/// Reads records one after the other and keeps their bytes until they are [released], so that what
/// must wait for its turn needs no copy.
///
/// [released]: PipeReader::release
#[derive(Debug)]
pub struct PipeReader<R> {
    input: R,
    endian: Endian,
    head: PipeHead<'static>,
    /// Bytes of the stream from `base` on, `filled` of them; the rest is room.
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    /// Offset in the stream of the next record.
    next: u64,
    ended: bool,
}

/// Bytes asked for with one read.
const READ: usize = 64 << 10;
/// What may follow one record, in bytes: descriptions of all tracepoints have 10 MB, traces the size of
/// their rings.
const MOST_PAYLOAD: u64 = 1 << 30;

impl<R: Source> PipeReader<R> {
    /// Goes on with a stream whose first bytes were read: at least [`FileHeader::PIPE_SIZE`].
    ///
    /// # Errors
    /// Those of [`FileHeader::decode`], and [`Error::HeaderSize`] for one that is not of pipe mode.
    pub fn new(first: Vec<u8>, input: R) -> Result<Self, Error> {
        let header = FileHeader::decode(&first)?;
        if !header.is_pipe() {
            return Err(Error::HeaderSize { size: header.size });
        }
        Ok(Self {
            input,
            endian: header.endian,
            head: PipeHead::new(header.endian),
            filled: first.len(),
            buffer: first,
            base: 0,
            next: header.data.offset,
            ended: false,
        })
    }

    /// Byte order of the stream.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// What the records so far have told about the recording.
    #[must_use]
    pub fn head(&self) -> &PipeHead<'static> {
        &self.head
    }

    /// Whether the next record can be had without waiting.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.need() <= self.rest().len() as u64 || (!self.ended && self.input.is_ready())
    }

    /// Bytes that are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.filled
    }

    /// The next record, once all of it has come; `None` at the end of the stream. Those that describe
    /// the recording are noted in [`PipeReader::head`].
    ///
    /// # Errors
    /// [`Error::Truncated`] when the stream ends inside a record, [`Error::Read`] when it cannot be
    /// read, [`Error::RecordSize`] and [`Error::PayloadSize`] for records that cannot be, and those of
    /// [`PipeHead::note`]. The stream is over then.
    pub fn next_record(&mut self) -> Result<Option<RecordAt<'_>>, Error> {
        if let Err(error) = self.fill() {
            self.stop();
            return Err(error);
        }
        let start = self.offset(self.next);
        let bytes = self.buffer.get(start..self.filled).unwrap_or_default();
        let mut records = Records::new(bytes, self.next, self.endian);
        let Some(record) = records.next() else {
            return Ok(None);
        };
        let noted = record.and_then(|record| {
            if PipeHead::wants(record.raw.kind) {
                let keep = |bytes: &[u8]| Cow::Owned(bytes.to_vec());
                self.head.note(&record, keep)?;
            }
            Ok(record)
        });
        self.next = records.position();
        if noted.is_err() {
            self.ended = true;
        }
        noted.map(Some)
    }

    /// The bytes from an offset in the stream on, as far as they have come and were not released.
    #[must_use]
    pub fn from(&self, position: u64) -> &[u8] {
        let bytes = self.buffer.get(self.offset(position)..self.filled);
        bytes.unwrap_or_default()
    }

    /// Forgets the bytes before an offset in the stream.
    pub fn release(&mut self, position: u64) {
        let position = position.min(self.next);
        let gone = self.offset(position).min(self.filled);
        // Moving the rest down costs as much as it is long: not for little.
        if gone >= self.filled / 2 {
            self.buffer.copy_within(gone..self.filled, 0);
            self.filled -= gone;
            self.base += gone as u64;
        }
    }

    fn offset(&self, position: u64) -> usize {
        usize::try_from(position.wrapping_sub(self.base)).unwrap_or(usize::MAX)
    }

    fn rest(&self) -> &[u8] {
        self.from(self.next)
    }

    /// Bytes from the next record on that it takes to go on: its header, then all of it, then what
    /// follows it.
    fn need(&self) -> u64 {
        let rest = self.rest();
        let Ok(header) = RecordHeader::decode(rest, self.endian) else {
            return RecordHeader::SIZE as u64;
        };
        let size = u64::from(header.size);
        match RawRecord::split(rest, self.endian) {
            Some((raw, _)) if has_payload(raw.kind) => {
                size.saturating_add(payload_size(&raw, self.endian))
            }
            _ => size,
        }
    }

    /// Reads until the next record is whole, or the stream has ended.
    fn fill(&mut self) -> Result<(), Error> {
        while !self.ended {
            let need = self.need();
            if need <= self.rest().len() as u64 {
                return Ok(());
            }
            let most = MOST_PAYLOAD;
            if need > most {
                let (offset, size) = (self.next, need);
                return Err(Error::PayloadSize { offset, size, most });
            }
            self.read()?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Error> {
        if self.buffer.len() < self.filled + READ {
            self.buffer.resize(self.filled + READ, 0);
        }
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let read = self.input.read(room);
        match read {
            Ok(0) => self.ended = true,
            Ok(count) => self.filled = (self.filled + count).min(self.buffer.len()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let (offset, kind) = (self.base + self.filled as u64, error.kind());
                return Err(Error::Read { offset, kind });
            }
        }
        Ok(())
    }

    /// Ends the stream before what has come of the next record.
    fn stop(&mut self) {
        self.ended = true;
        self.filled = self.offset(self.next).min(self.filled);
    }
}
