//! The value of a field.

use rperf_wire::Endian;

/// The value of a field in one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// An unsigned number or a pointer.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// An array of `char`, `u8` or `s8`: text up to its NUL, not necessarily UTF-8.
    Str(&'a [u8]),
    /// Bytes that are neither text nor numbers, such as a struct or a CPU mask.
    Bytes(&'a [u8]),
    /// An array of numbers. Arrays of `char`, `u8` and `s8` are [`Self::Str`] instead, so elements of one byte are here of
    /// other types, such as `bool`.
    Array(Elements<'a>),
}

/// An array of numbers inside a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements<'a> {
    pub(crate) bytes: &'a [u8],
    /// Size of an element in bytes: 1, 2, 4 or 8.
    pub(crate) size: usize,
    pub(crate) endian: Endian,
}

impl<'a> Elements<'a> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// Whether the array is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at `index`, zero-extended even if the elements are signed; `None` beyond the end.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        read_number(
            self.bytes,
            index.checked_mul(self.size)?,
            self.size,
            self.endian,
        )
    }

    /// The numbers in order, zero-extended as in [`Self::get`].
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let endian = self.endian;
        self.bytes
            .chunks_exact(self.size)
            .map(move |bytes| read_number(bytes, 0, bytes.len(), endian).unwrap_or(0))
    }
}

impl Default for Elements<'_> {
    fn default() -> Self {
        Self {
            bytes: &[],
            size: 1,
            endian: Endian::NATIVE,
        }
    }
}

/// Reads `size` bytes at `offset` as an unsigned number. `None` beyond the end of `raw` or if
/// `size` is not 1, 2, 4 or 8.
#[inline]
pub(crate) fn read_number(raw: &[u8], offset: usize, size: usize, endian: Endian) -> Option<u64> {
    match size {
        8 => endian.u64_at(raw, offset),
        4 => endian.u32_at(raw, offset).map(u64::from),
        2 => raw
            .get(offset..)?
            .first_chunk()
            .map(|bytes| u64::from(endian.u16(*bytes))),
        1 => raw.get(offset).map(|&byte| u64::from(byte)),
        _ => None,
    }
}
