//! What the fields of typed events can be.

use std::fmt::Debug;

use crate::{Elements, Error, Field, FieldReader, Tracepoint};

/// The type of a field of a typed event.
///
/// | type | kernels declare it as | value |
/// | --- | --- | --- |
/// | `i32`, `u32`, `i64`, `u64` | a number or pointer of any size | the number |
/// | `bool` | a number | whether it is not 0 |
/// | [`Text`] | `char[n]`, `__data_loc char[]`, … | the bytes up to NUL |
/// | [`Words`] | an array of numbers | the numbers |
/// | [`NamedNumber`](super::NamedNumber) | a number with a table in the `print fmt` | the number and its [names](super::Named) |
/// | [`State`](super::State) | the same | the [state of a task](super::TaskState) |
/// | `Option` of any of these | anything, or nothing | `None` where the kernel lacks the field |
pub trait FieldType {
    /// What reads the field.
    type Reader: Debug + Clone;
    /// What is read.
    type Value<'r>: Debug;

    /// What reads the field that has the first of these names that there is.
    ///
    /// # Errors
    /// [`Error::NoField`] if there is none of them, [`Error::FieldType`] if it is something else.
    fn reader(described: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error>;

    /// Bytes that raw data must have for the field.
    fn needs(reader: &Self::Reader) -> usize;

    /// The value in raw data that have as many bytes.
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r>;
}

/// A type of fields that are there.
pub trait Present {
    /// What it is, for errors.
    const EXPECTED: &'static str;
    /// What reads the field.
    type Reader: Debug + Clone;
    /// What is read; the default is for dynamic data that lead outside of the sample.
    type Value<'r>: Debug + Default;

    /// What reads `field`; `None` if it is something else.
    fn reader(described: &Tracepoint, field: &Field) -> Option<Self::Reader>;

    /// Where the field is.
    fn place(reader: &Self::Reader) -> &FieldReader;

    /// The value in raw data; `None` if they are cut short.
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Option<Self::Value<'r>>;
}

impl<T: Present> FieldType for T {
    type Reader = T::Reader;
    type Value<'r> = T::Value<'r>;

    fn reader(described: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error> {
        let mut known = names.iter();
        let field = known.find_map(|name| described.format.field(name));
        let Some(field) = field else {
            return Err(Error::NoField {
                event: described.name(),
                field: names.first().copied().unwrap_or_default(),
            });
        };
        T::reader(described, field).ok_or_else(|| Error::FieldType {
            event: described.name(),
            field: field.name.clone(),
            found: field.type_name.clone(),
            expected: T::EXPECTED,
        })
    }

    fn needs(reader: &Self::Reader) -> usize {
        T::place(reader).end()
    }

    #[inline]
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r> {
        T::read(reader, raw).unwrap_or_default()
    }
}

impl<T: Present> FieldType for Option<T> {
    type Reader = Option<T::Reader>;
    type Value<'r> = Option<T::Value<'r>>;

    fn reader(described: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error> {
        let mut known = names.iter();
        let field = known.find_map(|name| described.format.field(name));
        Ok(field.and_then(|field| T::reader(described, field)))
    }

    fn needs(_reader: &Self::Reader) -> usize {
        0
    }

    #[inline]
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r> {
        T::read(reader.as_ref()?, raw)
    }
}

/// A field of text: up to its NUL, not necessarily UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct Text;

/// A field that is an array of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Words;

/// What reads `field`, if it is one that `is_fit`.
fn fitting(
    described: &Tracepoint,
    field: &Field,
    is_fit: fn(&FieldReader) -> bool,
) -> Option<FieldReader> {
    Some(field.reader(described.abi.endian)).filter(is_fit)
}

macro_rules! numbers {
    ($($number:ty: $read:ident, $convert:expr;)+) => {
        $(
            impl Present for $number {
                const EXPECTED: &'static str = "a number";
                type Reader = FieldReader;
                type Value<'r> = $number;

                fn reader(described: &Tracepoint, field: &Field) -> Option<FieldReader> {
                    fitting(described, field, FieldReader::is_number)
                }

                fn place(reader: &FieldReader) -> &FieldReader {
                    reader
                }

                #[inline]
                fn read(reader: &FieldReader, raw: &[u8]) -> Option<$number> {
                    reader.$read(raw).map($convert)
                }
            }
        )+
    };
}

// The kernel's own types are no wider: what is cut off of a number is the extension of its sign.
numbers! {
    i32: i64, |number| number as i32;
    u32: u64, |number| number as u32;
    i64: i64, |number| number;
    u64: u64, |number| number;
    bool: u64, |number| number != 0;
}

impl Present for Text {
    const EXPECTED: &'static str = "text";
    type Reader = FieldReader;
    type Value<'r> = &'r [u8];

    fn reader(described: &Tracepoint, field: &Field) -> Option<FieldReader> {
        fitting(described, field, FieldReader::is_text)
    }

    fn place(reader: &FieldReader) -> &FieldReader {
        reader
    }

    #[inline]
    fn read<'r>(reader: &FieldReader, raw: &'r [u8]) -> Option<&'r [u8]> {
        reader.text(raw)
    }
}

impl Present for Words {
    const EXPECTED: &'static str = "an array of numbers";
    type Reader = FieldReader;
    type Value<'r> = Elements<'r>;

    fn reader(described: &Tracepoint, field: &Field) -> Option<FieldReader> {
        fitting(described, field, FieldReader::is_array)
    }

    fn place(reader: &FieldReader) -> &FieldReader {
        reader
    }

    #[inline]
    fn read<'r>(reader: &FieldReader, raw: &'r [u8]) -> Option<Elements<'r>> {
        reader.elements(raw)
    }
}
