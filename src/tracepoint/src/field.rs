//! One field of a tracepoint and its value in a raw record.

use rperf_wire::{Endian, until_nul};

/// A `field:` line of a format file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of one line"
)]
pub struct Field {
    /// Name, without brackets.
    pub name: String,
    /// C type as written, brackets included (`char[16]`, `__data_loc char[]`, `void *`).
    pub type_name: String,
    /// Bytes from the start of the raw record.
    pub offset: usize,
    /// Bytes in the raw record; 4 for dynamic ones, whose bytes lie elsewhere.
    pub size: usize,
    /// Bytes of one element; equal to `size` where the field is no array, 0 where unknown.
    pub element_size: usize,
    /// Whether the kernel says that it is signed.
    pub is_signed: bool,
    /// Whether the type has brackets.
    pub is_array: bool,
    /// Whether the field holds offset and length of data further on (`__data_loc`, `__rel_loc`).
    pub is_dynamic: bool,
    /// Whether the offset of a dynamic field counts from the field's own end (`__rel_loc`).
    pub is_relative: bool,
    /// Whether it is an array of bytes that usually holds text.
    pub is_string: bool,
    /// Whether the type is a pointer.
    pub is_pointer: bool,
    /// Whether the type contains `long`; such numbers are shown in hexadecimal.
    pub is_long: bool,
}

/// The value of a [`Field`] in one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number without a sign; pointers too.
    Unsigned(u64),
    /// A number with a sign.
    Signed(i64),
    /// Text up to its NUL, not necessarily UTF-8.
    Str(&'a [u8]),
    /// Bytes that are neither text nor numbers (structs, masks, addresses).
    Bytes(&'a [u8]),
    /// Numbers in a row.
    Array(Elements<'a>),
}

/// An array of numbers inside a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements<'a> {
    bytes: &'a [u8],
    size: usize,
    endian: Endian,
}

impl<'a> Elements<'a> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers in order, zero-extended.
    pub fn iter(&self) -> impl Iterator<Item = u64> + 'a {
        let endian = self.endian;
        self.bytes
            .chunks_exact(self.size)
            .map(move |bytes| read_number(bytes, 0, bytes.len(), endian).unwrap_or(0))
    }
}

/// Reads `size` bytes at `offset` as a number without a sign. `None` past the end of `raw` or when
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

/// Offset and length that a dynamic field at `offset` of `size` bytes points to. The offset is
/// within `raw` or 0; a length that reaches past the end of `raw` is 0.
pub(crate) fn dynamic_place(
    raw: &[u8],
    offset: usize,
    size: usize,
    is_relative: bool,
    endian: Endian,
) -> (usize, usize) {
    let Some(word) = read_number(raw, offset, size, endian) else {
        return (0, 0);
    };
    let mut start = usize::from((word & 0xffff) as u16);
    if is_relative {
        start += offset + size;
    }
    let length = if size == 2 {
        raw.len().saturating_sub(start)
    } else {
        usize::from((word >> 16 & 0xffff) as u16)
    };
    if start > raw.len() {
        return (0, 0);
    }
    (
        start,
        if start + length > raw.len() {
            0
        } else {
            length
        },
    )
}

impl Field {
    /// The bytes of the field in `raw`, those that a dynamic field points to. `None` where the
    /// record is too short.
    #[must_use]
    pub fn bytes<'a>(&self, raw: &'a [u8], endian: Endian) -> Option<&'a [u8]> {
        let (offset, size) = if self.is_dynamic {
            dynamic_place(raw, self.offset, self.size, self.is_relative, endian)
        } else if self.size == 0 {
            (self.offset, raw.len().checked_sub(self.offset)?)
        } else {
            (self.offset, self.size)
        };
        raw.get(offset..)?.get(..size)
    }

    /// The value of the field in `raw`. `None` where the record is too short.
    #[must_use]
    pub fn value<'a>(&self, raw: &'a [u8], endian: Endian) -> Option<Value<'a>> {
        let bytes = self.bytes(raw, endian)?;
        if self.is_string {
            return Some(Value::Str(until_nul(bytes)));
        }
        if self.is_array || self.is_dynamic {
            return Some(match self.element_size {
                size @ (1 | 2 | 4 | 8) if self.is_array => Value::Array(Elements {
                    bytes,
                    size,
                    endian,
                }),
                _ => Value::Bytes(bytes),
            });
        }
        let Some(number) = read_number(bytes, 0, bytes.len(), endian) else {
            return Some(Value::Bytes(bytes));
        };
        if !self.is_signed || self.is_pointer {
            return Some(Value::Unsigned(number));
        }
        let unused = 64 - 8 * bytes.len();
        Some(Value::Signed(number.cast_signed() << unused >> unused))
    }
}
