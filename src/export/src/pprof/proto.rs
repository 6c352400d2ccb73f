//! The messages of pprof's `profile.proto`, with the fields that are written. Ids start at 1; strings are indexes into
//! the string table.

use prost::Message;

/// Field numbers of `Profile`, the outermost message. It has no type here: its fields are written one at a time.
pub(super) mod tag {
    pub(in crate::pprof) const SAMPLE_TYPE: u32 = 1;
    pub(in crate::pprof) const SAMPLE: u32 = 2;
    pub(in crate::pprof) const MAPPING: u32 = 3;
    pub(in crate::pprof) const LOCATION: u32 = 4;
    pub(in crate::pprof) const FUNCTION: u32 = 5;
    pub(in crate::pprof) const STRING_TABLE: u32 = 6;
    pub(in crate::pprof) const TIME_NANOS: u32 = 9;
    pub(in crate::pprof) const DURATION_NANOS: u32 = 10;
    pub(in crate::pprof) const PERIOD_TYPE: u32 = 11;
    pub(in crate::pprof) const PERIOD: u32 = 12;
    pub(in crate::pprof) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Type and unit of one value of each sample, or of the period.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ValueType {
    #[prost(int64, tag = "1")]
    pub(super) kind: i64,
    #[prost(int64, tag = "2")]
    pub(super) unit: i64,
}

/// The samples of one thread that have the same stack, added up.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub(super) location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub(super) value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) label: Vec<Label>,
}

/// A label of a sample.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Label {
    #[prost(int64, tag = "1")]
    pub(super) key: i64,
    #[prost(int64, tag = "2")]
    pub(super) str: i64,
    #[prost(int64, tag = "3")]
    pub(super) num: i64,
}

impl Label {
    pub(super) fn text(key: i64, text: i64) -> Self {
        Self {
            key,
            str: text,
            num: 0,
        }
    }

    /// Creates a numeric label of an id; -1 if it was not recorded (`u32::MAX`).
    pub(super) fn number(key: i64, number: u32) -> Self {
        Self {
            key,
            str: 0,
            num: i64::from(number.cast_signed()),
        }
    }
}

/// A mapped file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Mapping {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// End of the addresses. Their start, which is not written, is 0.
    #[prost(uint64, tag = "3")]
    pub(super) memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub(super) filename: i64,
    #[prost(int64, tag = "6")]
    pub(super) build_id: i64,
    #[prost(bool, tag = "7")]
    pub(super) has_functions: bool,
    #[prost(bool, tag = "8")]
    pub(super) has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub(super) has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub(super) has_inline_frames: bool,
}

/// A code location.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(uint64, tag = "2")]
    pub(super) mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub(super) address: u64,
    /// Innermost first.
    #[prost(message, repeated, tag = "4")]
    pub(super) line: Vec<Line>,
}

/// A line of a function.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Line {
    #[prost(uint64, tag = "1")]
    pub(super) function_id: u64,
    #[prost(int64, tag = "2")]
    pub(super) line: i64,
}

/// A function.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Function {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int64, tag = "2")]
    pub(super) name: i64,
    #[prost(int64, tag = "3")]
    pub(super) system_name: i64,
    #[prost(int64, tag = "4")]
    pub(super) filename: i64,
}
