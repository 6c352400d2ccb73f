//! Reading a field without looking for it: where it lies is worked out once for an event.

use rperf_wire::{Endian, until_nul};

use crate::value::read_number;
use crate::{Elements, Field, Value};

/// Reads one field out of raw data.
///
/// The description is evaluated once, so that a sample costs a comparison with the length of its data and a load. Data that end before the field, or whose dynamic part would lie outside of them, have no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldReader {
    offset: u32,
    size: u32,
    place: Place,
    content: Content,
    endian: Endian,
}

/// Where the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the offset, `size` of them.
    Fixed,
    /// From the offset to the end of the data.
    Rest,
    /// Where a word of `size` bytes at the offset points to (`__data_loc`).
    Dynamic,
    /// The same, counted from the end of the word (`__rel_loc`).
    Relative,
}

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Unsigned,
    Signed,
    Text,
    /// Numbers of 1, 2, 4 or 8 bytes.
    Array(u8),
    Bytes,
}

impl Field {
    /// What reads the field out of the raw data of a kernel of this byte order.
    #[must_use]
    pub fn reader(&self, endian: Endian) -> FieldReader {
        // Raw data are shorter than 64 KB: a field that begins beyond has no value.
        let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        FieldReader {
            offset: clamped(self.offset),
            size: clamped(self.size),
            place: match self {
                Self { size: 0, .. } => Place::Rest,
                _ if self.is_dynamic && self.is_relative => Place::Relative,
                _ if self.is_dynamic => Place::Dynamic,
                _ => Place::Fixed,
            },
            content: self.content(),
            endian,
        }
    }

    fn content(&self) -> Content {
        if self.is_string {
            return Content::Text;
        }
        match (self.is_array || self.is_dynamic, self.size) {
            (true, _) => match self.element_size {
                size @ (1 | 2 | 4 | 8) if self.is_array => Content::Array(size as u8),
                _ => Content::Bytes,
            },
            (false, 1 | 2 | 4 | 8) if self.is_signed && !self.is_pointer => Content::Signed,
            (false, 1 | 2 | 4 | 8) => Content::Unsigned,
            _ => Content::Bytes,
        }
    }
}

impl FieldReader {
    /// Whether the field is a number: [`FieldReader::u64`] and [`FieldReader::i64`] read it.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.content, Content::Unsigned | Content::Signed)
    }

    /// Whether the field is text: [`FieldReader::text`] reads it.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.content == Content::Text
    }

    /// Whether the field is an array of numbers: [`FieldReader::elements`] reads it.
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self.content, Content::Array(_))
    }

    /// Bytes that raw data must have for the field, its dynamic part not counted.
    #[must_use]
    pub fn end(&self) -> usize {
        let size = match self.place {
            Place::Rest => 0,
            _ => self.size,
        };
        (self.offset as usize).saturating_add(size as usize)
    }

    /// The bytes of a number as they are, zero-extended. `None` if the field is no number.
    #[inline]
    #[must_use]
    pub fn u64(&self, raw: &[u8]) -> Option<u64> {
        match self.content {
            Content::Unsigned | Content::Signed => self.bits(raw),
            _ => None,
        }
    }

    /// A number, sign-extended if the kernel declares it signed. `None` if the field is no number.
    #[inline]
    #[must_use]
    pub fn i64(&self, raw: &[u8]) -> Option<i64> {
        match self.content {
            Content::Unsigned => Some(self.bits(raw)?.cast_signed()),
            Content::Signed => {
                let unused = u64::BITS.saturating_sub(8 * self.size);
                Some(self.bits(raw)?.cast_signed() << unused >> unused)
            }
            _ => None,
        }
    }

    /// Text up to its NUL, not necessarily UTF-8. `None` if the field is no text.
    #[inline]
    #[must_use]
    pub fn text<'r>(&self, raw: &'r [u8]) -> Option<&'r [u8]> {
        match self.content {
            Content::Text => Some(until_nul(self.bytes(raw)?)),
            _ => None,
        }
    }

    /// The numbers of an array. `None` if the field is none.
    #[inline]
    #[must_use]
    pub fn elements<'r>(&self, raw: &'r [u8]) -> Option<Elements<'r>> {
        let Content::Array(size) = self.content else {
            return None;
        };
        Some(Elements {
            bytes: self.bytes(raw)?,
            size: size.into(),
            endian: self.endian,
        })
    }

    /// The bytes of the field, those that a dynamic field leads to.
    #[inline]
    #[must_use]
    pub fn bytes<'r>(&self, raw: &'r [u8]) -> Option<&'r [u8]> {
        let (offset, size) = (self.offset as usize, self.size as usize);
        match self.place {
            Place::Fixed => raw.get(offset..)?.get(..size),
            Place::Rest => raw.get(offset..),
            Place::Dynamic => self.dynamic(raw, 0),
            Place::Relative => self.dynamic(raw, offset + size),
        }
    }

    /// The value, whatever the field is.
    #[must_use]
    pub fn value<'r>(&self, raw: &'r [u8]) -> Option<Value<'r>> {
        Some(match self.content {
            Content::Unsigned => Value::Unsigned(self.bits(raw)?),
            Content::Signed => Value::Signed(self.i64(raw)?),
            Content::Text => Value::Str(self.text(raw)?),
            Content::Array(_) => Value::Array(self.elements(raw)?),
            Content::Bytes => Value::Bytes(self.bytes(raw)?),
        })
    }

    #[inline]
    fn bits(&self, raw: &[u8]) -> Option<u64> {
        read_number(raw, self.offset as usize, self.size as usize, self.endian)
    }

    /// The bytes that the word of the field points to: the lower half is their offset from `start`, the upper half their
    /// number. Very old kernels have the lower half alone; their text runs on to its NUL.
    fn dynamic<'r>(&self, raw: &'r [u8], start: usize) -> Option<&'r [u8]> {
        let word = self.bits(raw)?;
        let rest = raw.get(start + usize::from(word as u16)..)?;
        match self.size {
            2 => Some(rest),
            _ => rest.get(..usize::from((word >> 16) as u16)),
        }
    }
}
