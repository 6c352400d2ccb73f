//! The one error of this crate.

/// A field that the bytes at hand cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The record ends before the field does.
    #[error("{field} needs {need} bytes at offset {offset} of the record, {have} are left")]
    Short {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte that the decoder was given.
        offset: usize,
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that are left at that offset.
        have: usize,
    },
    /// A count or size says more than any record can hold.
    #[error("{field} at offset {offset} of the record says {value}, more than the record can hold")]
    TooLarge {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte that the decoder was given.
        offset: usize,
        /// What it says.
        value: u64,
    },
}
