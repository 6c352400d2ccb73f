//! Compression (`-z`): runs of ring data as COMPRESSED records.
//!
//! Each record contains one complete Zstandard frame, so that readers that decode one stream over all
//! records, like Linux perf, and readers that decode each record separately get the same bytes.
//! The data of a frame may begin and end within a record of the rings.

use rperf_perfdata::WriteError;
use rperf_perfdata::feature::CompressionInfo;
use rperf_wire::{Encoder, Endian, Misc, RecordHeader, RecordKind};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::output_stream::OutputStream;

/// Maximum number of bytes compressed together: the maximum size of a Zstandard block.
const MAX_PART: usize = 128 << 10;
/// Maximum number of bytes after the header of a COMPRESSED record.
const MAX_PAYLOAD: usize = u16::MAX as usize - RecordHeader::SIZE;
/// `PERF_COMP_ZSTD`.
const ZSTD: u32 = 1;
/// The only supported level.
const LEVEL: u32 = 1;
/// Size of the buffer that readers need: at least [`MAX_PART`]. Linux perf stores the size of its rings; this is its default,
/// 512 KiB and the control page.
const READER_BUFFER_SIZE: u32 = (512 << 10) + 4096;

/// Writes COMPRESSED records, and counts the bytes before and after compression.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    /// Bytes before compression.
    pub(crate) original: u64,
    /// Bytes after compression.
    pub(crate) compressed: u64,
    /// Buffer for a COMPRESSED record.
    record: Vec<u8>,
}

impl Compressor {
    /// Compresses a run of ring data, and writes it to `to`.
    pub(crate) fn write(&mut self, run: &[u8], to: &mut OutputStream) -> Result<(), WriteError> {
        for part in run.chunks(MAX_PART) {
            self.write_part(part, to)?;
        }
        Ok(())
    }

    /// Adds the counts of another file of the recording.
    pub(crate) fn add(&mut self, other: &Self) {
        self.original += other.original;
        self.compressed += other.compressed;
    }

    /// Compresses one part, and writes it as a COMPRESSED record; if the result is too large for a record, the part is halved.
    fn write_part(&mut self, part: &[u8], to: &mut OutputStream) -> Result<(), WriteError> {
        let frame = compress_to_vec(part, CompressionLevel::Fastest);
        if frame.len() > MAX_PAYLOAD {
            let (first, second) = part.split_at(part.len() / 2);
            self.write_part(first, to)?;
            return self.write_part(second, to);
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

    /// Returns the COMPRESSED feature, with the ratio rounded to the nearest integer.
    pub(crate) fn feature(&self) -> CompressionInfo {
        let ratio = (self.original + self.compressed / 2).checked_div(self.compressed);
        CompressionInfo {
            kind: ZSTD,
            level: LEVEL,
            ratio: ratio
                .and_then(|ratio| u32::try_from(ratio).ok())
                .unwrap_or_default(),
            mmap_len: READER_BUFFER_SIZE,
        }
    }
}
