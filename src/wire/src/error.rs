//! The error type of this crate.

/// A field that could not be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes of the record or structure end before the field does.
    #[error("{field} needs {need} bytes at offset {offset} of the body, {have} are left")]
    Short {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte passed to the decoder; in a record, the first one after the header.
        offset: usize,
        /// Bytes that the field needs.
        need: usize,
        /// Bytes that are left at that offset.
        have: usize,
    },
    /// A field has more 64-bit numbers than remain in the record or structure.
    #[error(
        "{field} at offset {offset} of the body has {value} 64-bit numbers, more than the body can hold"
    )]
    TooLarge {
        /// Name of the field that was read.
        field: &'static str,
        /// Offset of the field from the first byte passed to the decoder; in a record, the first one after the header.
        offset: usize,
        /// Number of 64-bit numbers in the field, as given by the record (a count or a mask) or by the attr.
        value: u64,
    },
}
