//! Reading records in pipe mode from a stream that is still being written.

use std::borrow::Cow;
use std::io::{ErrorKind, Read};

use rperf_memory::reserve;
use rperf_wire::{Endian, RawRecord, RecordHeader};

use crate::records::{has_payload, payload_size};
use crate::{Decompressor, Error, FileHeader, PipeHead, RecordAt, Records};

/// The input of a stream.
pub trait StreamInput: Read {
    /// Whether a read would return at once. A wrong `false` does no harm: the caller then processes the records it has before
    /// it reads more.
    fn is_ready(&self) -> bool;
}

/// Bytes in memory, for tests and stored streams.
impl StreamInput for &[u8] {
    fn is_ready(&self) -> bool {
        !self.is_empty()
    }
}

/// Reads records and keeps their bytes until they are [released], so that a caller that buffers records need not copy
/// them. Compressed records are replaced by their content, and positions of records are offsets in the decompressed
/// stream; errors of compressed records have offsets in the input.
///
/// [released]: PipeReader::release
#[derive(Debug)]
pub struct PipeReader<R> {
    input: R,
    endian: Endian,
    head: PipeHead<'static>,
    /// Bytes of the stream from `base` on, of which `filled` are valid.
    buffer: Vec<u8>,
    filled: usize,
    base: u64,
    /// Offset in the stream of the next record.
    next: u64,
    ended: bool,
    /// State of decompression, from the first compressed record on.
    compressed: Option<CompressedInput>,
}

/// The input from the first compressed record on, and its decompressor.
#[derive(Debug)]
struct CompressedInput {
    decompressor: Decompressor,
    /// Bytes that were read but not decompressed yet.
    bytes: Vec<u8>,
    /// Offset of the first of `bytes` in the input.
    offset: u64,
    /// Why the input ended, if not at its regular end.
    end: Option<Error>,
}

/// Minimum number of bytes requested per read.
const READ: usize = 64 << 10;
/// Maximum size of one record with its payload, in bytes. Real payloads are smaller: the formats of all tracepoints take 10 MB,
/// and the trace of an AUXTRACE record is at most as large as the AUX buffer.
const MAX_RECORD_WITH_PAYLOAD: u64 = 1 << 30;

impl<R: StreamInput> PipeReader<R> {
    /// Creates a reader of a stream whose `first` bytes, at least [`FileHeader::PIPE_SIZE`], were already read from
    /// `input`.
    ///
    /// # Errors
    /// Errors of [`FileHeader::decode`], and [`Error::HeaderSize`] if the header is not one of pipe
    /// mode.
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
            compressed: None,
        })
    }

    /// Byte order of the stream.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The metadata in the records so far.
    #[must_use]
    pub fn head(&self) -> &PipeHead<'static> {
        &self.head
    }

    /// Whether the next record is complete, or input is available.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.need() <= self.rest().len() as u64 || (!self.ended && self.input.is_ready())
    }

    /// Number of buffered bytes.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.filled
    }

    /// Reads until the next record is complete, and returns it; `None` at the end of the stream. Metadata are added to
    /// [`PipeReader::head`].
    ///
    /// # Errors
    /// An invalid or incomplete record, or a failure to read or decompress it. The stream ends after an error.
    pub fn next_record(&mut self) -> Result<Option<RecordAt<'_>>, Error> {
        if let Err(error) = self.fill() {
            self.stop();
            return Err(error);
        }
        let start = self.buffer_index(self.next);
        let bytes = self.buffer.get(start..self.filled).unwrap_or_default();
        let mut records = Records::new(bytes, self.next, self.endian);
        let Some(record) = records.next() else {
            // An error of the compressed input is reported after the last decompressed record.
            let end = self
                .compressed
                .as_mut()
                .and_then(|compressed| compressed.end.take());
            return end.map_or(Ok(None), Err);
        };
        let result = record.and_then(|record| {
            if PipeHead::is_metadata(record.raw.kind) {
                let keep = |bytes: &[u8]| Cow::Owned(bytes.to_vec());
                self.head.note(&record, keep)?;
            }
            Ok(record)
        });
        self.next = records.position();
        result.map(Some).map_err(|error| {
            // Nothing after the invalid record is returned.
            self.ended = true;
            self.filled = start.min(self.filled);
            // If the compressed input ended with an error, the record is incomplete for that reason.
            let end = self.compressed.as_mut().and_then(|input| input.end.take());
            end.unwrap_or(error)
        })
    }

    /// The available bytes from an offset in the stream on.
    #[must_use]
    pub fn bytes_from(&self, position: u64) -> &[u8] {
        let bytes = self.buffer.get(self.buffer_index(position)..self.filled);
        bytes.unwrap_or_default()
    }

    /// Allows the bytes before an offset in the stream to be freed.
    pub fn release(&mut self, position: u64) {
        let position = position.min(self.next);
        let released = self.buffer_index(position).min(self.filled);
        // Moving the bytes that are kept is only worthwhile if they are few.
        if released >= self.filled / 2 {
            self.buffer.copy_within(released..self.filled, 0);
            self.filled -= released;
            self.base += released as u64;
        }
    }

    /// The index in the buffer of an offset in the stream.
    fn buffer_index(&self, position: u64) -> usize {
        usize::try_from(position.wrapping_sub(self.base)).unwrap_or(usize::MAX)
    }

    /// The available bytes from the next record on.
    fn rest(&self) -> &[u8] {
        self.bytes_from(self.next)
    }

    /// Number of bytes needed from the next record on: the size of its header until that is complete, then the size with its
    /// body, then the size with its payload.
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

    /// Reads, and decompresses compressed records, until the next record of the stream is complete or the stream ends.
    fn fill(&mut self) -> Result<(), Error> {
        while !self.ended {
            let need = self.need();
            if need <= self.rest().len() as u64 {
                // Once decompression has started, the buffer has no compressed records.
                if self.compressed.is_some() || !self.is_compressed() {
                    return Ok(());
                }
                self.start_decompression();
                continue;
            }
            let most = MAX_RECORD_WITH_PAYLOAD;
            if need > most {
                let (offset, size) = (self.next, need);
                return Err(Error::PayloadSize { offset, size, most });
            }
            self.read()?;
        }
        Ok(())
    }

    /// Whether the next record, which is complete, is compressed.
    fn is_compressed(&self) -> bool {
        let header = RecordHeader::decode(self.rest(), self.endian);
        header.is_ok_and(|header| Decompressor::is_compressed(header.kind))
    }

    /// Moves the next record, which is compressed, and the bytes after it out of `buffer` into `compressed`, and decompresses
    /// them.
    fn start_decompression(&mut self) {
        let bytes = self.rest().to_vec();
        self.filled = self.buffer_index(self.next).min(self.filled);
        self.compressed = Some(CompressedInput {
            decompressor: Decompressor::new(self.endian),
            bytes,
            offset: self.next,
            end: None,
        });
        self.expand();
    }

    /// Decompresses the complete records available. At the end of input, also outputs the records that the decompressor holds
    /// back: uncompressed ones that follow an incomplete decompressed record.
    fn expand(&mut self) {
        let Some(compressed) = &mut self.compressed else {
            return;
        };
        self.buffer.truncate(self.filled);
        let expanded = compressed.expand(self.ended, self.endian, &mut self.buffer);
        if let Err(error) = expanded {
            // Outputs the records that are held back. A second error is ignored.
            drop(
                compressed
                    .decompressor
                    .finish(compressed.offset, &mut self.buffer),
            );
            compressed.end = Some(error);
            self.ended = true;
        }
        self.filled = self.buffer.len();
    }

    /// Reads input once.
    fn read(&mut self) -> Result<(), Error> {
        let Some(compressed) = &mut self.compressed else {
            return self.read_records();
        };
        let mut buffer = vec![0; READ];
        match self.input.read(&mut buffer) {
            Ok(0) => self.ended = true,
            Ok(count) => compressed.bytes.extend(buffer.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                let offset = compressed.offset + compressed.bytes.len() as u64;
                let kind = error.kind();
                // What was read is returned before the error.
                self.ended = true;
                self.expand();
                if let Some(compressed) = &mut self.compressed {
                    compressed.end = Some(Error::Read { offset, kind });
                }
                return Ok(());
            }
        }
        self.expand();
        Ok(())
    }

    /// Reads input once, before the first compressed record: directly into `buffer`.
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

    /// Reserves buffer space for one read.
    fn grow(&mut self) -> Result<(), Error> {
        let size = self.filled + READ;
        if self.buffer.capacity() < size {
            let more = READ.max(self.buffer.len());
            reserve(&mut self.buffer, more).map_err(|source| Error::OutOfMemory {
                offset: self.next,
                source,
            })?;
        }
        self.buffer.resize(size, 0);
        Ok(())
    }

    /// Ends the stream before the incomplete next record.
    fn stop(&mut self) {
        self.ended = true;
        self.filled = self.buffer_index(self.next).min(self.filled);
    }
}

impl CompressedInput {
    /// Appends the decompressed records that are complete to `out`; at the end of input also the uncompressed ones that
    /// [`Decompressor`] holds back.
    fn expand(&mut self, ended: bool, endian: Endian, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut records = Records::new(&self.bytes, self.offset, endian);
        let mut next = self.offset;
        let mut result = Ok(());
        while let Some(record) = records.next() {
            match record {
                Ok(record) => self.decompressor.push(&record, out)?,
                // The rest of the record has not been read yet.
                Err(Error::Truncated { need, .. }) if !ended && need <= MAX_RECORD_WITH_PAYLOAD => {
                    break;
                }
                Err(Error::Truncated { offset, need, .. }) if !ended => {
                    result = Err(Error::PayloadSize {
                        offset,
                        size: need,
                        most: MAX_RECORD_WITH_PAYLOAD,
                    });
                    break;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            next = records.position();
        }
        let consumed = usize::try_from(next - self.offset).unwrap_or(usize::MAX);
        self.bytes.drain(..consumed.min(self.bytes.len()));
        self.offset = next;
        if ended {
            let finished = self.decompressor.finish(next, out);
            return result.and(finished);
        }
        result
    }
}
