//! The error type of this crate.

/// A field that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record ends before the field does.
    #[error("{field} needs {need} bytes at offset {offset} of the record, {have} are left")]
    Short {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte passed to the decoder.
        offset: usize,
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that are left at that offset.
        have: usize,
    },
    /// A count or size is larger than the remaining part of the record.
    #[error("{field} at offset {offset} of the record is {value}, more than the record can hold")]
    TooLarge {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte passed to the decoder.
        offset: usize,
        /// The count or size.
        value: u64,
    },
}
