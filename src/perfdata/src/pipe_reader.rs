//! A recording read while it is still being written: records of pipe mode out of a stream.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

use rperf_memory::reserve;
use rperf_wire::{Endian, RawRecord, RecordHeader};

use crate::records::{has_payload, payload_size};
use crate::{Error, Expander, FileHeader, PipeHead, RecordAt, Records};

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
/// must wait for its turn needs no copy. Compressed ones are replaced by what is in them, and all offsets
/// count as if they had never been compressed.
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
    /// From the first compressed record on.
    packed: Option<Packed>,
}

/// What came and is not part of the stream of records yet.
#[derive(Debug)]
struct Packed {
    expander: Expander,
    bytes: Vec<u8>,
    /// Offset in the input of the first of `bytes`.
    offset: u64,
    /// Why nothing more comes, if not for the end of the input.
    end: Option<Error>,
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
            packed: None,
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
            // Decompressed records are whole: what ended them comes behind the last one.
            let end = self.packed.as_mut().and_then(|packed| packed.end.take());
            return end.map_or(Ok(None), Err);
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
        let size = header.record_size() as u64;
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
                if self.packed.is_some() || !self.is_compressed() {
                    return Ok(());
                }
                self.unpack();
                continue;
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

    /// Whether the next record, all of which has come, is compressed.
    fn is_compressed(&self) -> bool {
        let header = RecordHeader::decode(self.rest(), self.endian);
        header.is_ok_and(|header| Expander::wants(header.kind))
    }

    /// Begins to decompress: what has come from the next record on is taken out of the stream.
    fn unpack(&mut self) {
        let bytes = self.rest().to_vec();
        self.filled = self.offset(self.next).min(self.filled);
        self.packed = Some(Packed {
            expander: Expander::new(self.endian),
            bytes,
            offset: self.next,
            end: None,
        });
        self.expand();
    }

    /// Decompresses the whole records that have come, and the last of them at the end of the input.
    fn expand(&mut self) {
        let Some(packed) = &mut self.packed else {
            return;
        };
        self.buffer.truncate(self.filled);
        let expanded = packed.expand(self.ended, self.endian, &mut self.buffer);
        if let Err(error) = expanded {
            // What waits behind the damage is given; that it ends there is known already.
            drop(packed.expander.finish(packed.offset, &mut self.buffer));
            packed.end = Some(error);
            self.ended = true;
        }
        self.filled = self.buffer.len();
    }

    fn read(&mut self) -> Result<(), Error> {
        let Some(packed) = &mut self.packed else {
            return self.read_records();
        };
        let mut room = vec![0; READ];
        match self.input.read(&mut room) {
            Ok(0) => self.ended = true,
            Ok(count) => packed.bytes.extend(room.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let offset = packed.offset + packed.bytes.len() as u64;
                let kind = error.kind();
                return Err(Error::Read { offset, kind });
            }
        }
        self.expand();
        Ok(())
    }

    fn read_records(&mut self) -> Result<(), Error> {
        if self.buffer.len() < self.filled + READ {
            self.grow()?;
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

    /// Makes room for one read.
    fn grow(&mut self) -> Result<(), Error> {
        let size = self.filled + READ;
        if self.buffer.capacity() < size {
            let more = READ.max(self.buffer.len());
            reserve(&mut self.buffer, more).map_err(|source| Error::NoRoom {
                offset: self.next,
                source,
            })?;
        }
        self.buffer.resize(size, 0);
        Ok(())
    }

    /// Ends the stream before what has come of the next record.
    fn stop(&mut self) {
        self.ended = true;
        self.filled = self.offset(self.next).min(self.filled);
    }
}

impl Packed {
    /// Appends to `out` the records that can be given: all of them at the end.
    fn expand(&mut self, ended: bool, endian: Endian, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut records = Records::new(&self.bytes, self.offset, endian);
        let mut next = self.offset;
        let mut end = Ok(());
        while let Some(record) = records.next() {
            match record {
                Ok(record) => self.expander.push(&record, out)?,
                Err(Error::Truncated { .. }) if !ended => break,
                Err(error) => {
                    end = Err(error);
                    break;
                }
            }
            next = records.position();
        }
        let gone = usize::try_from(next - self.offset).unwrap_or(usize::MAX);
        self.bytes.drain(..gone.min(self.bytes.len()));
        self.offset = next;
        if ended {
            let finished = self.expander.finish(next, out);
            return end.and(finished);
        }
        end
    }
}
