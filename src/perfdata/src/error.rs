//! What can be wrong with a file so that it cannot be read, and what is worth a warning.

use rperf_memory::OutOfMemory;
use rperf_wire::{DecodeError, RecordKind};

use crate::{FeatureId, ZstdError};

/// Why bytes are not a perf.data file that can be read. All offsets count from the file's start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// The first eight bytes are not those of perf.data.
    #[error("not a perf.data file: it begins with {}, not \"PERFILE2\"", show_magic(.magic))]
    Magic {
        /// The first bytes, at most eight.
        magic: Vec<u8>,
    },
    /// A stream ended without having described an event.
    #[error("no event is described: there is no HEADER_ATTR record behind the header of pipe mode")]
    NoAttrRecord,
    /// A stream could not be read any further.
    #[error("cannot read at offset {offset}: {kind}")]
    Read {
        /// Bytes read until then.
        offset: u64,
        /// What the system says.
        kind: std::io::ErrorKind,
    },
    /// There is no memory for what a stream holds.
    #[error("no room for the record at offset {offset} and those that wait with it: {source}")]
    NoRoom {
        /// Where the record begins.
        offset: u64,
        /// How much could not be allocated.
        source: OutOfMemory,
    },
    /// More follows a record of a stream than is kept in memory.
    #[error("{size} bytes follow the record at offset {offset}; at most {most} are taken")]
    PayloadSize {
        /// Where the record begins.
        offset: u64,
        /// Bytes that it announces.
        size: u64,
        /// Bytes that are taken.
        most: u64,
    },
    /// The header says a size that no version has.
    #[error(
        "header at offset 8 says a size of {size} bytes, expected 104 or 72, or 16 for pipe mode"
    )]
    HeaderSize {
        /// What it says.
        size: u64,
    },
    /// The file ends inside the header.
    #[error("the file ends inside its header: {have} of 104 bytes are there")]
    HeaderCut {
        /// Length of the file.
        have: usize,
    },
    /// A section lies outside the file.
    #[error("{what} at offset {offset} has {size} bytes, but the file has {file}")]
    Section {
        /// Name of the section.
        what: &'static str,
        /// Where it should begin.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// Length of the file.
        file: usize,
    },
    /// The size of an event's description makes no sense.
    #[error(
        "event descriptions at offset {offset} have a size of {size} bytes each, at least 80 are needed"
    )]
    AttrSize {
        /// Where the descriptions begin.
        offset: u64,
        /// What the header says.
        size: u64,
    },
    /// The file describes no event.
    #[error("the file describes no event: its attr section at offset {offset} is empty")]
    NoEvents {
        /// Where the descriptions should be.
        offset: u64,
    },
    /// Something that the header points to cannot be decoded.
    #[error("{what} at offset {offset}: {source}")]
    Decode {
        /// What it is.
        what: &'static str,
        /// Where it begins.
        offset: u64,
        /// The field.
        source: DecodeError,
    },
    /// The descriptions of the tracepoints cannot be read.
    #[error(transparent)]
    Tracepoints(#[from] rperf_tracepoint::Error),
    /// A record says that it is smaller than a record's header.
    #[error("record at offset {offset} says a size of {size} bytes, smaller than its header")]
    RecordSize {
        /// Where the record begins.
        offset: u64,
        /// What it says.
        size: u16,
    },
    /// A compressed record cannot be decompressed.
    #[error("compressed record at offset {offset}: {source}")]
    Zstd {
        /// Where the record begins.
        offset: u64,
        /// Why.
        source: ZstdError,
    },
    /// A compressed record says that it holds more than it does.
    #[error("compressed record at offset {offset} says {size} compressed bytes, {have} are there")]
    CompressedSize {
        /// Where the record begins.
        offset: u64,
        /// What it says.
        size: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// Compressed records say that they are far more than a recording can be.
    #[error(
        "compressed record at offset {offset}: the records so far would be {size} bytes long; at most {most} are taken for their size"
    )]
    Ratio {
        /// Where the record begins.
        offset: u64,
        /// Bytes of all records up to this one.
        size: u64,
        /// Bytes that are taken.
        most: u64,
    },
    /// The last of the compressed records is not whole.
    #[error("the compressed records end inside a record: {left} bytes of it are there")]
    CompressedCut {
        /// Bytes of it.
        left: u64,
    },
    /// A part of a directory cannot be read to its end.
    #[error("part {part}: {source}")]
    Part {
        /// Which, counted from 1.
        part: u32,
        /// Why; offsets are those of the part.
        source: Box<Error>,
    },
    /// The last record is not whole.
    #[error("record at offset {offset} needs {need} bytes, {have} are left")]
    Truncated {
        /// Where the record begins.
        offset: u64,
        /// Bytes it needs.
        need: u64,
        /// Bytes there are.
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

/// Something wrong that does not keep the file from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Finding {
    /// The recorder was killed before it could complete the header.
    #[error(
        "the recording was not ended properly (data size 0): reading to the end of the file, without header features"
    )]
    Unfinished,
    /// The file is shorter than its header says.
    #[error("the file is cut: data at offset {offset} should have {need} bytes, {have} are there")]
    DataCut {
        /// Where the data begin.
        offset: u64,
        /// Bytes that should be there.
        need: u64,
        /// Bytes that are there.
        have: u64,
    },
    /// A header feature lies outside the file.
    #[error(
        "header feature {feature} at offset {offset} has {size} bytes and reaches beyond the end of the file"
    )]
    FeatureCut {
        /// Which.
        feature: FeatureId,
        /// Where it should begin.
        offset: u64,
        /// How long it should be.
        size: u64,
    },
    /// The table of header features is cut off.
    #[error("the table of header features at offset {offset} is cut off: {lost} of them are lost")]
    FeatureTableCut {
        /// Where it should begin.
        offset: u64,
        /// Features that it does not reach.
        lost: usize,
    },
    /// A header feature cannot be decoded.
    #[error("header feature {feature} at offset {offset} cannot be decoded")]
    FeatureMalformed {
        /// Which.
        feature: FeatureId,
        /// Where it begins.
        offset: u64,
    },
    /// A record that describes the recording cannot be decoded, in pipe mode.
    #[error("{kind} at offset {offset} cannot be decoded")]
    RecordMalformed {
        /// Which.
        kind: RecordKind,
        /// Where it begins.
        offset: u64,
    },
    /// Event descriptions are longer than the fields known here.
    #[error(
        "event descriptions have {size} bytes, of which {known} are known here; the rest is skipped"
    )]
    AttrLarger {
        /// Bytes in the file.
        size: u64,
        /// Bytes known.
        known: u64,
    },
}
