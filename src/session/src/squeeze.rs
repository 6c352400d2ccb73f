//! Compressed recordings (`-z`): runs of ring data as COMPRESSED records.
//!
//! Each record holds whole Zstandard frames, so that readers that keep one stream over all records, as Linux perf
//! does, and those that take each alone both get the same bytes. What is in them pays no heed to record borders.

use rperf_perfdata::WriteError;
use rperf_perfdata::feature::Compressed;
use rperf_wire::{Encoder, Endian, Misc, RecordHeader, RecordKind};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::medium::Medium;

/// Bytes that are compressed together: a block of Zstandard.
const PART: usize = 128 << 10;
/// Most bytes behind the header of a record.
const PAYLOAD: usize = u16::MAX as usize - RecordHeader::SIZE;
/// `PERF_COMP_ZSTD`.
const ZSTD: u32 = 1;
/// The one level there is.
const LEVEL: u32 = 1;
/// Room that readers make for what one record holds: Linux perf has its ring's size there, which is at least as much
/// as a part.
const READERS_ROOM: u32 = (512 << 10) + 4096;

/// Compresses, and counts what came of it.
#[derive(Debug, Default)]
pub(crate) struct Squeeze {
    /// Bytes before.
    pub(crate) original: u64,
    /// Bytes of frames.
    pub(crate) compressed: u64,
    record: Vec<u8>,
}

impl Squeeze {
    /// Writes a run of records.
    pub(crate) fn write(&mut self, run: &[u8], to: &mut Medium) -> Result<(), WriteError> {
        for part in run.chunks(PART) {
            self.part(part, to)?;
        }
        Ok(())
    }

    /// Adds what was compressed into another file of the recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.original += other.original;
        self.compressed += other.compressed;
    }

    /// Compresses one part; one that stays too large for a record is halved.
    fn part(&mut self, part: &[u8], to: &mut Medium) -> Result<(), WriteError> {
        let frame = compress_to_vec(part, CompressionLevel::Fastest);
        if frame.len() > PAYLOAD {
            let (first, second) = part.split_at(part.len() / 2);
            self.part(first, to)?;
            return self.part(second, to);
        }
        self.original += part.len() as u64;
        self.compressed += frame.len() as u64;
        let header = RecordHeader {
            kind: RecordKind::COMPRESSED,
            misc: Misc(0),
            size: u16::try_from(RecordHeader::SIZE + frame.len()).unwrap_or(u16::MAX),
        };
        self.record.clear();
        let mut record = Encoder::new(&mut self.record, Endian::NATIVE);
        header.encode(&mut record);
        record.bytes(&frame);
        to.write_data(&self.record)
    }

    /// What the header tells of it.
    pub(crate) fn feature(&self) -> Compressed {
        let ratio = (self.original + self.compressed / 2).checked_div(self.compressed);
        Compressed {
            kind: ZSTD,
            level: LEVEL,
            ratio: ratio
                .and_then(|ratio| u32::try_from(ratio).ok())
                .unwrap_or_default(),
            mmap_len: READERS_ROOM,
        }
    }
}
