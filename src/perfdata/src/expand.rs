//! Undoing the compression of records, one COMPRESSED record at a time.
//!
//! ```text
//! in    COMM | COMPRESSED: SAMPLE SAM | MMAP2 | COMPRESSED: PLE SAMPLE | FINISHED_ROUND
//! out   COMM | SAMPLE | MMAP2 | SAMPLE SAMPLE | FINISHED_ROUND
//! ```
//!
//! What is compressed is one stream of records that pays no heed to the borders of what holds it. A record
//! stands in the output where the last piece of it came. The decoder is behind by its window, so records
//! that were not compressed wait until it has given what came before them.

use std::collections::VecDeque;

use rperf_wire::{Cursor, Endian, RawRecord, RecordHeader, RecordKind};

use crate::zstd::Zstd;
use crate::{Error, RecordAt};

/// Turns records, COMPRESSED ones among them, into those that were meant.
#[derive(Debug)]
pub struct Expander {
    endian: Endian,
    zstd: Zstd,
    /// Decompressed bytes from `given` on.
    text: Vec<u8>,
    /// Decompressed bytes that were given out.
    given: u64,
    /// Other records, each with the number of decompressed bytes before it.
    held: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of COMPRESSED records.
    compressed: u64,
}

/// Bytes that one compressed byte may become, on average. Records of a real recording become a hundred at
/// most.
const MOST_RATIO: u64 = 1024;
/// Bytes that a recording may become however short it is.
const ALWAYS: u64 = 1 << 20;

impl Expander {
    /// At the start of a recording whose length is not known.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        Self::with_input(endian, 0)
    }

    /// At the start of a recording of so many bytes, or of one part of a directory. The length bounds the
    /// memory that is granted to the decoder.
    #[must_use]
    pub fn with_input(endian: Endian, bytes: u64) -> Self {
        Self {
            endian,
            zstd: Zstd::new(bytes),
            text: Vec::new(),
            given: 0,
            held: VecDeque::new(),
            compressed: 0,
        }
    }

    /// Whether records of this kind hold others.
    #[inline]
    #[must_use]
    pub fn wants(kind: RecordKind) -> bool {
        matches!(kind, RecordKind::COMPRESSED | RecordKind::COMPRESSED2)
    }

    /// Takes the next record and appends to `out` those that can be given by now, whole.
    ///
    /// # Errors
    /// [`Error::Zstd`], [`Error::Ratio`] and [`Error::CompressedSize`] with the offset of the record that
    /// cannot be decompressed, and [`Error::RecordSize`] for one inside that cannot be. Nothing sensible
    /// follows then.
    pub fn push(&mut self, record: &RecordAt<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        if Self::wants(record.raw.kind) {
            self.decompress(record)?;
        } else if self.held.is_empty() && self.given == self.zstd.produced() {
            encode(record, self.endian, out);
            return Ok(());
        } else {
            let mut bytes = Vec::new();
            encode(record, self.endian, &mut bytes);
            self.held.push_back((self.zstd.produced(), bytes));
        }
        self.give(record.position, out)
    }

    /// Appends what waits: nothing more comes.
    ///
    /// # Errors
    /// Those of [`Expander::push`]; [`Error::CompressedCut`] where the last decompressed record is not
    /// whole. What could be given was appended nevertheless.
    pub fn finish(&mut self, position: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let finished = self.zstd.finish(&mut self.text);
        finished.map_err(|source| Error::Zstd {
            offset: position,
            source,
        })?;
        self.give(position, out)?;
        for (_, bytes) in self.held.drain(..) {
            out.extend_from_slice(&bytes);
        }
        match self.text.len() {
            0 => Ok(()),
            left => Err(Error::CompressedCut { left: left as u64 }),
        }
    }

    fn decompress(&mut self, record: &RecordAt<'_>) -> Result<(), Error> {
        let offset = record.position;
        let body = content(record, self.endian)?;
        self.compressed += body.len() as u64;
        let fed = self.zstd.feed(body, &mut self.text);
        fed.map_err(|source| Error::Zstd { offset, source })?;
        let most = ALWAYS + self.compressed.saturating_mul(MOST_RATIO);
        let size = self.zstd.produced();
        if size > most {
            return Err(Error::Ratio { offset, size, most });
        }
        Ok(())
    }

    /// Appends decompressed records, and between them the others at their places.
    fn give(&mut self, position: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut used = 0;
        let result = loop {
            let before = self.held.front().map_or(u64::MAX, |(before, _)| *before);
            let room = usize::try_from(before - self.given).unwrap_or(usize::MAX);
            let rest = self.text.get(used..).unwrap_or_default();
            match whole_record(rest, self.endian) {
                Ok(Some(size)) if size <= room => {
                    out.extend_from_slice(rest.get(..size).unwrap_or_default());
                    used += size;
                    self.given += size as u64;
                }
                // A record that is not whole, or goes on behind the other one, comes after it.
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
        self.text.drain(..used);
        result
    }
}

/// Size of the record at the front, if it is whole; the size that it says if it cannot be.
fn whole_record(bytes: &[u8], endian: Endian) -> Result<Option<usize>, u16> {
    let Ok(header) = RecordHeader::decode(bytes, endian) else {
        return Ok(None);
    };
    if header.record_size() < RecordHeader::SIZE {
        return Err(header.size);
    }
    let split = RawRecord::split(bytes, endian);
    Ok(split.map(|(_, size)| size))
}

/// The compressed bytes in a record: all of it, or as many as its first field says.
fn content<'a>(record: &RecordAt<'a>, endian: Endian) -> Result<&'a [u8], Error> {
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

/// A record as it stood in the file, with what follows it.
fn encode(record: &RecordAt<'_>, endian: Endian, out: &mut Vec<u8>) {
    record.raw.encode(endian, out);
    out.extend_from_slice(record.payload);
}
