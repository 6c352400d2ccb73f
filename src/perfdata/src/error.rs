//! Errors that prevent reading a file, and findings that are worth a warning.

use rperf_memory::OutOfMemory;
use rperf_wire::{DecodeError, RecordKind};

use crate::{FeatureId, ZstdError};

/// Why bytes can't be read as a perf.data file. Offsets are relative to the start of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The first eight bytes are not a magic number of perf.data.
    #[error("not a perf.data file: it begins with {}, not \"PERFILE2\"", show_magic(.magic))]
    Magic {
        /// The first bytes, at most eight.
        magic: Vec<u8>,
    },
    /// A stream ended without describing an event.
    #[error("no event is described: no HEADER_ATTR record follows the pipe mode header")]
    NoAttrRecord,
    /// Reading from a stream failed.
    #[error("cannot read at offset {offset:#x}: {kind}")]
    Read {
        /// Number of bytes read before.
        offset: u64,
        /// The system's error.
        kind: std::io::ErrorKind,
    },
    /// Out of memory while buffering a stream.
    #[error("cannot buffer the record at offset {offset:#x}: {source}")]
    OutOfMemory {
        /// Offset of the record.
        offset: u64,
        /// The failed allocation.
        source: OutOfMemory,
    },
    /// A record of a stream and its payload (the data after a record of AUX data or of tracepoint formats) exceed the limit.
    #[error(
        "the record at offset {offset:#x} and the data after it have {size} bytes; the limit is {most}"
    )]
    PayloadSize {
        /// Offset of the record.
        offset: u64,
        /// Size of both, in bytes.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The header has a size that no version uses.
    #[error(
        "header at offset 8 has a size of {size} bytes, expected 104 or 72, or 16 for pipe mode"
    )]
    HeaderSize {
        /// Size given by the header, in bytes.
        size: u64,
    },
    /// The file ends inside the header.
    #[error("the file is truncated inside its header: it has {have} of 104 bytes")]
    HeaderTruncated {
        /// Length of the file.
        have: usize,
    },
    /// A section lies outside the file.
    #[error("{what} at offset {offset:#x} has {size} bytes, but the file has {file}")]
    Section {
        /// Name of the section.
        what: &'static str,
        /// Offset given by the file.
        offset: u64,
        /// Size given by the file, in bytes.
        size: u64,
        /// Length of the file.
        file: usize,
    },
    /// The size of an event description (an entry of the attr section: an attr, then the offset and size of the event's ids) is
    /// less than that of the first version: 64 bytes of the attr, and 16.
    #[error(
        "event descriptions at offset {offset:#x} have a size of {size} bytes each, at least 80 are needed"
    )]
    AttrSize {
        /// Offset of the descriptions.
        offset: u64,
        /// Size given by the header, in bytes.
        size: u64,
    },
    /// The file describes no events.
    #[error("the file describes no events: its attr section at offset {offset:#x} is empty")]
    NoEvents {
        /// Offset of the descriptions.
        offset: u64,
    },
    /// A part that the header refers to cannot be decoded.
    #[error("{what} at offset {offset:#x}: {source}")]
    Decode {
        /// Name of the part.
        what: &'static str,
        /// Offset of the part.
        offset: u64,
        /// The invalid field.
        source: DecodeError,
    },
    /// The descriptions of the tracepoints cannot be read.
    #[error(transparent)]
    Tracepoints(#[from] rperf_tracepoint::Error),
    /// The size of a record is smaller than a record header.
    #[error("record at offset {offset:#x} has a size of {size} bytes, smaller than its header")]
    RecordSize {
        /// Offset of the record.
        offset: u64,
        /// Size given by the record, in bytes.
        size: u16,
    },
    /// A compressed record cannot be decompressed.
    #[error("compressed record at offset {offset:#x}: {source}")]
    Zstd {
        /// Offset of the record.
        offset: u64,
        /// Cause.
        source: ZstdError,
    },
    /// The size in a compressed record exceeds the record.
    #[error(
        "compressed record at offset {offset:#x} should have {size} compressed bytes, but has {have}"
    )]
    CompressedSize {
        /// Offset of the record.
        offset: u64,
        /// Size given by the record, in bytes.
        size: u64,
        /// Available bytes.
        have: u64,
    },
    /// The decompressed records are larger than their compressed size permits.
    #[error(
        "compressed record at offset {offset:#x}: the records up to here have at least {size} bytes; the limit for their compressed size is {most}"
    )]
    Ratio {
        /// Offset of the record.
        offset: u64,
        /// Size of the records decompressed until the limit was exceeded, in bytes.
        size: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// The last of the decompressed records is incomplete.
    #[error("the compressed records are truncated: the last record has only {left} bytes")]
    CompressedTruncated {
        /// Available bytes of the record.
        left: u64,
    },
    /// A file of a directory cannot be read to its end.
    #[error("part {part}: {source}")]
    Part {
        /// Position of the file among those that were passed to the reader, from 1.
        part: u32,
        /// Cause; its offsets are relative to that file.
        source: Box<Error>,
    },
    /// The last record is incomplete.
    #[error("record at offset {offset:#x} needs {need} bytes, but {have} are left")]
    Truncated {
        /// Offset of the record.
        offset: u64,
        /// Size of the record.
        need: u64,
        /// Available bytes.
        have: u64,
    },
}

fn show_magic(magic: &[u8]) -> String {
    if magic.iter().all(|byte| (0x20..0x7f).contains(byte)) {
        format!("{:?}", String::from_utf8_lossy(magic))
    } else {
        let hex: Vec<String> = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("the bytes {}", hex.join(" "))
    }
}

/// A problem that doesn't prevent reading the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFinding {
    /// The recorder did not complete the header: there are no features, and the data size is 0, or too small if the recorder
    /// updated it while recording.
    #[error(
        "the recording was not completed: reading to the end of the file, without header features"
    )]
    Unfinished,
    /// The data section reaches beyond the end of the file.
    #[error(
        "the file is truncated: data at offset {offset:#x} should have {need} bytes, but {have} are left"
    )]
    DataTruncated {
        /// Offset of the data.
        offset: u64,
        /// Size given by the header, in bytes.
        need: u64,
        /// Available bytes.
        have: u64,
    },
    /// A header feature reaches beyond the end of the file.
    #[error(
        "header feature {feature} at offset {offset:#x} has {size} bytes and reaches beyond the end of the file"
    )]
    FeatureTruncated {
        /// The feature.
        feature: FeatureId,
        /// Offset given by the header.
        offset: u64,
        /// Size given by the header, in bytes.
        size: u64,
    },
    /// The table of header features is truncated.
    #[error(
        "the table of header features at offset {offset:#x} is truncated: {lost} features are lost"
    )]
    FeatureTableTruncated {
        /// Offset of the table.
        offset: u64,
        /// Number of features that are missing.
        lost: usize,
    },
    /// A header feature cannot be decoded.
    #[error("header feature {feature} at offset {offset:#x} cannot be decoded")]
    FeatureMalformed {
        /// The feature.
        feature: FeatureId,
        /// Offset of its section.
        offset: u64,
    },
    /// A record with metadata cannot be decoded, in pipe mode.
    #[error("{kind} at offset {offset:#x} cannot be decoded")]
    RecordMalformed {
        /// Type of the record.
        kind: RecordKind,
        /// Offset of the record.
        offset: u64,
    },
    /// The attrs in event descriptions are longer than the known layouts.
    #[error(
        "the attrs of events have {size} bytes each, of which {known} are known here; the rest is skipped"
    )]
    AttrLarger {
        /// Size of an attr in the file, in bytes.
        size: u64,
        /// Size of the largest known layout, in bytes.
        known: u64,
    },
}

impl FileFinding {
    /// Whether the end of the file is missing.
    #[must_use]
    pub fn is_truncation(&self) -> bool {
        matches!(
            self,
            Self::DataTruncated { .. }
                | Self::FeatureTruncated { .. }
                | Self::FeatureTableTruncated { .. }
        )
    }
}
