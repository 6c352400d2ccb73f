//! Incremental decompression of COMPRESSED records.
//!
//! ```text
//! in    COMM | COMPRESSED: SAMPLE SAM | MMAP2 | COMPRESSED: PLE SAMPLE | FINISHED_ROUND
//! out   COMM | SAMPLE | MMAP2 | SAMPLE SAMPLE | FINISHED_ROUND
//! ```
//!
//! The compressed data are one stream of records, split at arbitrary positions. A decompressed
//! record is output after the COMPRESSED record with its last byte. Since the decoder buffers
//! output up to its window size, uncompressed records are held back until the decompressed records
//! before them are complete.

use std::collections::VecDeque;

use rperf_wire::{Cursor, Endian, RawRecord, RecordHeader, RecordKind};

use crate::frames::CompleteFrames;
use crate::zstd::Zstd;
use crate::{Error, RecordAt};

/// Replaces COMPRESSED records by the records they contain.
#[derive(Debug)]
pub struct Decompressor {
    endian: Endian,
    /// Decodes block by block: perf's stream, whose only frame continues from record to record.
    zstd: Zstd,
    /// Decodes records whose frames are complete, as rperf writes them.
    frames: CompleteFrames,
    /// Buffer for the content of a record decoded by `frames`.
    buffer: Vec<u8>,
    /// Decompressed bytes from position `output` on.
    decompressed: Vec<u8>,
    /// Number of decompressed bytes already output. `zstd.produced()` also counts those in `decompressed` and in the decoder.
    output: u64,
    /// Uncompressed records that are held back, each with the number of decompressed bytes before
    /// it.
    held: VecDeque<(u64, Vec<u8>)>,
    /// Number of compressed bytes decompressed so far.
    compressed: u64,
}

/// Maximum average compression ratio, apart from [`ALLOWED_SIZE`].
const MAX_RATIO: u64 = 1024;
/// Number of decompressed bytes that are allowed at any ratio.
const ALLOWED_SIZE: u64 = 1 << 20;

/// The maximum decompressed size of this number of compressed bytes.
pub(crate) fn max_decompressed(compressed: u64) -> u64 {
    compressed
        .saturating_mul(MAX_RATIO)
        .saturating_add(ALLOWED_SIZE)
}

impl Decompressor {
    /// Creates a decompressor for a recording of unknown length.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        Self::with_input_size(endian, 0)
    }

    /// Creates a decompressor for an input of `bytes` bytes (0 if unknown): a recording, or one file of a directory. The size
    /// limits the memory of the decoder.
    #[must_use]
    pub fn with_input_size(endian: Endian, bytes: u64) -> Self {
        Self {
            endian,
            zstd: Zstd::new(bytes),
            frames: CompleteFrames::new(bytes),
            buffer: Vec::new(),
            decompressed: Vec::new(),
            output: 0,
            held: VecDeque::new(),
            compressed: 0,
        }
    }

    /// Whether records of this type contain compressed records.
    #[inline]
    #[must_use]
    pub fn is_compressed(kind: RecordKind) -> bool {
        matches!(kind, RecordKind::COMPRESSED | RecordKind::COMPRESSED2)
    }

    /// Takes the next record and appends to `out` all records that are complete by now.
    ///
    /// # Errors
    /// [`Error::Zstd`], [`Error::Ratio`] and [`Error::CompressedSize`] with the offset of the
    /// record that cannot be decompressed, and [`Error::RecordSize`] for an invalid record inside
    /// it. Decompression can't continue after an error.
    pub fn push(&mut self, record: &RecordAt<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let decoded = None;
        self.push_decoded(record, decoded, out)
    }

    /// Like [`Decompressor::push`]. `decoded` is the record's content if another thread has decoded it already, which is possible
    /// only if the record's frames are complete.
    pub(crate) fn push_decoded(
        &mut self,
        record: &RecordAt<'_>,
        decoded: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if Self::is_compressed(record.raw.kind) {
            self.decompress(record, decoded)?;
        } else if self.held.is_empty() && self.output == self.zstd.produced() {
            encode(record, self.endian, out);
            return Ok(());
        } else {
            let mut bytes = Vec::new();
            encode(record, self.endian, &mut bytes);
            self.held.push_back((self.zstd.produced(), bytes));
        }
        self.append_decompressed(record.position, out)
    }

    /// Ends the input: appends the records that are still held back. `position` is the offset to report in errors.
    ///
    /// # Errors
    /// Errors of [`Decompressor::push`]; [`Error::CompressedTruncated`] if the last decompressed record is
    /// incomplete, after all complete records have been appended.
    pub fn finish(&mut self, position: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let finished = self.zstd.finish(&mut self.decompressed);
        finished.map_err(|source| Error::Zstd {
            offset: position,
            source,
        })?;
        self.append_decompressed(position, out)?;
        for (_, bytes) in self.held.drain(..) {
            out.extend_from_slice(&bytes);
        }
        match self.decompressed.len() {
            0 => Ok(()),
            left => Err(Error::CompressedTruncated { left: left as u64 }),
        }
    }

    fn decompress(&mut self, record: &RecordAt<'_>, decoded: Option<&[u8]>) -> Result<(), Error> {
        let offset = record.position;
        let body = compressed_bytes(record, self.endian)?;
        self.compressed += body.len() as u64;
        let most = max_decompressed(self.compressed);
        let mut buffer = std::mem::take(&mut self.buffer);
        // Complete frames can only be used if the previous frame is complete: otherwise the content continues that frame.
        let decoded = match decoded {
            _ if !self.zstd.is_between_frames() => None,
            None => self.frames.decode(body, &mut buffer).then_some(&buffer[..]),
            decoded => decoded,
        };
        if let Some(decoded) = decoded {
            self.decompressed.extend_from_slice(decoded);
            self.zstd.add_produced(decoded.len());
        } else {
            let fed = self.zstd.feed(body, most, &mut self.decompressed);
            fed.map_err(|source| Error::Zstd { offset, source })?;
        }
        self.buffer = buffer;
        let size = self.zstd.produced();
        if size > most {
            return Err(Error::Ratio { offset, size, most });
        }
        Ok(())
    }

    /// Appends decompressed records, and the uncompressed ones at their positions between them.
    fn append_decompressed(&mut self, position: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut used = 0;
        let result = loop {
            let before = self.held.front().map_or(u64::MAX, |(before, _)| *before);
            // Number of decompressed bytes from position `output` to the next held record.
            let room = usize::try_from(before - self.output).unwrap_or(usize::MAX);
            let rest = self.decompressed.get(used..).unwrap_or_default();
            match complete_record(rest, self.endian) {
                Ok(Some(size)) if size <= room => {
                    out.extend_from_slice(rest.get(..size).unwrap_or_default());
                    used += size;
                    self.output += size as u64;
                }
                // All bytes before the held record have arrived, so that it is next. A record at the start of `rest` that is
                // incomplete, invalid, or extends beyond the position of the held record is handled after the held record.
                _ if rest.len() >= room => {
                    if let Some((_, bytes)) = self.held.pop_front() {
                        out.extend_from_slice(&bytes);
                    }
                }
                Ok(_) => break Ok(()),
                Err(size) => {
                    break Err(Error::RecordSize {
                        offset: position,
                        size,
                    });
                }
            }
        };
        self.decompressed.drain(..used);
        result
    }
}

/// Returns the size of the first record if it is complete; an error with its size if it is invalid.
fn complete_record(bytes: &[u8], endian: Endian) -> Result<Option<usize>, u16> {
    let Ok(header) = RecordHeader::decode(bytes, endian) else {
        return Ok(None);
    };
    if header.record_size() < RecordHeader::SIZE {
        return Err(header.size);
    }
    let split = RawRecord::split(bytes, endian);
    Ok(split.map(|(_, size)| size))
}

/// Returns the compressed bytes of a record: its whole body, or in COMPRESSED2 as many bytes as its first field specifies.
pub(crate) fn compressed_bytes<'a>(
    record: &RecordAt<'a>,
    endian: Endian,
) -> Result<&'a [u8], Error> {
    if record.raw.kind != RecordKind::COMPRESSED2 {
        return Ok(record.raw.body);
    }
    let mut at = Cursor::new(record.raw.body, endian);
    let size = at.u64("data_size").unwrap_or(u64::MAX);
    let content = usize::try_from(size)
        .ok()
        .and_then(|size| at.rest().get(..size));
    content.ok_or(Error::CompressedSize {
        offset: record.position,
        size,
        have: at.rest().len() as u64,
    })
}

/// Appends a record, unchanged, with its payload: the data that follow a record of AUX data or of tracepoint formats.
fn encode(record: &RecordAt<'_>, endian: Endian, out: &mut Vec<u8>) {
    record.raw.encode(endian, out);
    out.extend_from_slice(record.payload);
}
