//! Field access compiled once per event.

use rperf_wire::{Endian, until_nul};

use crate::value::read_number;
use crate::{Elements, Field, Value};

/// Reads one field from raw data.
///
/// Methods that read return `None` if the data is truncated before the end of the field or of its dynamic part. A field of
/// unknown length (declared with size 0, or a dynamic field of very old kernels, whose location word has no size) extends to
/// the end of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldReader {
    offset: u32,
    size: u32,
    location: FieldLocation,
    content: ContentType,
    endian: Endian,
}

/// Location of a field in the raw data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldLocation {
    /// `size` bytes at the offset.
    Fixed,
    /// From the offset to the end of the data; the declared size is 0.
    Rest,
    /// The location is in a word of `size` bytes at the offset (`__data_loc`).
    Dynamic,
    /// Like `Dynamic`, relative to the end of the word (`__rel_loc`).
    Relative,
}

/// Type of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentType {
    Unsigned,
    Signed,
    Text,
    /// Numbers, each of this many bytes: 1, 2, 4 or 8.
    Array(u8),
    Bytes,
}

impl Field {
    /// Creates a reader of the field for kernels with this byte order.
    #[must_use]
    pub fn reader(&self, endian: Endian) -> FieldReader {
        // Raw data are shorter than 64 KB: a field whose offset or size is clamped has no value.
        let clamped = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        FieldReader {
            offset: clamped(self.offset),
            size: clamped(self.size),
            location: match self {
                Self { size: 0, .. } => FieldLocation::Rest,
                _ if self.is_dynamic && self.is_relative => FieldLocation::Relative,
                _ if self.is_dynamic => FieldLocation::Dynamic,
                _ => FieldLocation::Fixed,
            },
            content: self.content(),
            endian,
        }
    }

    fn content(&self) -> ContentType {
        if self.is_string {
            return ContentType::Text;
        }
        // A dynamic field that is no array, such as `__data_loc cpumask_t`, is read as bytes.
        if self.is_array || self.is_dynamic {
            return match self.element_size {
                size @ (1 | 2 | 4 | 8) if self.is_array => ContentType::Array(size as u8),
                _ => ContentType::Bytes,
            };
        }
        match self.size {
            1 | 2 | 4 | 8 if self.is_signed && !self.is_pointer => ContentType::Signed,
            1 | 2 | 4 | 8 => ContentType::Unsigned,
            _ => ContentType::Bytes,
        }
    }
}

impl FieldReader {
    /// Whether the field is a number: [`FieldReader::u64`] and [`FieldReader::i64`] read it.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(self.content, ContentType::Unsigned | ContentType::Signed)
    }

    /// Whether the field is a number that the kernel declares signed.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.content == ContentType::Signed
    }

    /// Whether the field is text: [`FieldReader::text`] reads it.
    #[must_use]
    pub fn is_text(&self) -> bool {
        self.content == ContentType::Text
    }

    /// Whether the field is an array of numbers: [`FieldReader::elements`] reads it.
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self.content, ContentType::Array(_))
    }

    /// Number of bytes raw data must have for the field, without its dynamic part.
    #[must_use]
    pub fn end(&self) -> usize {
        let size = match self.location {
            FieldLocation::Rest => 0,
            _ => self.size,
        };
        (self.offset as usize).saturating_add(size as usize)
    }

    /// Reads a number, zero-extended. `None` if the field is not a number.
    #[inline]
    #[must_use]
    pub fn u64(&self, raw: &[u8]) -> Option<u64> {
        match self.content {
            ContentType::Unsigned | ContentType::Signed => self.bits(raw),
            _ => None,
        }
    }

    /// Reads a number, sign-extended if the kernel declares it signed. `None` if the field is not a
    /// number.
    #[inline]
    #[must_use]
    pub fn i64(&self, raw: &[u8]) -> Option<i64> {
        match self.content {
            ContentType::Unsigned => Some(self.bits(raw)?.cast_signed()),
            ContentType::Signed => {
                let unused_bits = u64::BITS.saturating_sub(8 * self.size);
                Some(self.bits(raw)?.cast_signed() << unused_bits >> unused_bits)
            }
            _ => None,
        }
    }

    /// Reads text up to its NUL, not necessarily UTF-8. `None` if the field is not text.
    #[inline]
    #[must_use]
    pub fn text<'r>(&self, raw: &'r [u8]) -> Option<&'r [u8]> {
        match self.content {
            ContentType::Text => Some(until_nul(self.bytes(raw)?)),
            _ => None,
        }
    }

    /// Reads the numbers of an array. `None` if the field is not an array.
    #[inline]
    #[must_use]
    pub fn elements<'r>(&self, raw: &'r [u8]) -> Option<Elements<'r>> {
        let ContentType::Array(size) = self.content else {
            return None;
        };
        Some(Elements {
            bytes: self.bytes(raw)?,
            size: size.into(),
            endian: self.endian,
        })
    }

    /// The bytes of the field; for a dynamic field, those it refers to.
    #[inline]
    #[must_use]
    pub fn bytes<'r>(&self, raw: &'r [u8]) -> Option<&'r [u8]> {
        let (offset, size) = (self.offset as usize, self.size as usize);
        match self.location {
            FieldLocation::Fixed => raw.get(offset..)?.get(..size),
            FieldLocation::Rest => raw.get(offset..),
            FieldLocation::Dynamic => {
                let record_start = 0;
                self.dynamic(raw, record_start)
            }
            FieldLocation::Relative => {
                let word_end = offset + size;
                self.dynamic(raw, word_end)
            }
        }
    }

    /// Reads the value of a field of any type.
    #[must_use]
    pub fn value<'r>(&self, raw: &'r [u8]) -> Option<Value<'r>> {
        Some(match self.content {
            ContentType::Unsigned => Value::Unsigned(self.bits(raw)?),
            ContentType::Signed => Value::Signed(self.i64(raw)?),
            ContentType::Text => Value::Str(self.text(raw)?),
            ContentType::Array(_) => Value::Array(self.elements(raw)?),
            ContentType::Bytes => Value::Bytes(self.bytes(raw)?),
        })
    }

    /// The number at the field's offset: the value of a number, or the location word of a dynamic field.
    #[inline]
    fn bits(&self, raw: &[u8]) -> Option<u64> {
        read_number(raw, self.offset as usize, self.size as usize, self.endian)
    }

    /// The bytes that the field's location word refers to: the lower half of the word is the offset from `start`, the upper
    /// half the size. In very old kernels, the word is only the offset, in two bytes: all data from there on are returned,
    /// and the text in them ends at its NUL.
    fn dynamic<'r>(&self, raw: &'r [u8], start: usize) -> Option<&'r [u8]> {
        let word = self.bits(raw)?;
        let rest = raw.get(start + usize::from(word as u16)..)?;
        match self.size {
            2 => Some(rest),
            _ => rest.get(..usize::from((word >> 16) as u16)),
        }
    }
}
