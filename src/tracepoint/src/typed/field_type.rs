//! Types of the fields of typed events.

use std::fmt::Debug;

use crate::{Elements, Error, Field, FieldReader, Tracepoint};

/// The type of a field of a typed event.
///
/// | type | kernels declare it as | value |
/// | --- | --- | --- |
/// | `i32`, `u32`, `i64`, `u64` | a number or pointer of any size | the number; for `i32` and `u32` its lower 32 bits |
/// | `bool` | a number | whether it is not 0 |
/// | [`TextField`] | `char[n]`, `__data_loc char[]` or another array of `char`, `u8` or `s8` | the bytes up to NUL |
/// | [`NumberArray`] | an array of other numbers | the numbers |
/// | [`NamedNumber`](super::NamedNumber) | a number | the number and its [names](super::NamedValue) in the `print fmt` |
/// | [`TaskStateField`](super::TaskStateField) | a number | the [state of a task](super::TaskState) |
/// | `Option` of any of these | the same as without `Option`, or not at all | `None` if missing, of another type or truncated |
pub trait FieldType {
    /// The reader of the field.
    type Reader: Debug + Clone;
    /// The value of the field.
    type Value<'r>: Debug;

    /// Creates a reader of the first existing field among `names`.
    ///
    /// # Errors
    /// [`Error::NoField`] if no field has one of the names, [`Error::FieldType`] if the field has another type. An `Option`
    /// causes no error.
    fn reader(tracepoint: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error>;

    /// Number of bytes raw data must have for the field; 0 for an `Option`.
    fn min_size(reader: &Self::Reader) -> usize;

    /// Reads the value from raw data of at least `min_size` bytes.
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r>;
}

/// A type of required fields. The type of an optional field is an `Option` of it.
pub trait RequiredField {
    /// Description of the type, for errors.
    const EXPECTED: &'static str;
    /// The reader of the field.
    type Reader: Debug + Clone;
    /// The value of the field; the default if the field is dynamic and its data lies outside the raw data.
    type Value<'r>: Debug + Default;

    /// Creates a reader of `field`; `None` if it has another type.
    fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<Self::Reader>;

    /// The [`FieldReader`] that `reader` is or contains.
    fn bytes_reader(reader: &Self::Reader) -> &FieldReader;

    /// Reads the value from raw data; `None` if the data is truncated.
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Option<Self::Value<'r>>;
}

impl<T: RequiredField> FieldType for T {
    type Reader = T::Reader;
    type Value<'r> = T::Value<'r>;

    fn reader(tracepoint: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error> {
        let mut names_to_try = names.iter();
        let field = names_to_try.find_map(|name| tracepoint.format.field(name));
        let Some(field) = field else {
            return Err(Error::NoField {
                event: tracepoint.name(),
                field: names.first().copied().unwrap_or_default(),
            });
        };
        T::reader(tracepoint, field).ok_or_else(|| Error::FieldType {
            event: tracepoint.name(),
            field: field.name.clone(),
            found: field.type_name.clone(),
            expected: T::EXPECTED,
        })
    }

    fn min_size(reader: &Self::Reader) -> usize {
        T::bytes_reader(reader).end()
    }

    #[inline]
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r> {
        T::read(reader, raw).unwrap_or_default()
    }
}

impl<T: RequiredField> FieldType for Option<T> {
    type Reader = Option<T::Reader>;
    type Value<'r> = Option<T::Value<'r>>;

    fn reader(tracepoint: &Tracepoint, names: &[&'static str]) -> Result<Self::Reader, Error> {
        let mut names_to_try = names.iter();
        let field = names_to_try.find_map(|name| tracepoint.format.field(name));
        Ok(field.and_then(|field| T::reader(tracepoint, field)))
    }

    fn min_size(_reader: &Self::Reader) -> usize {
        0
    }

    #[inline]
    fn read<'r>(reader: &'r Self::Reader, raw: &'r [u8]) -> Self::Value<'r> {
        T::read(reader.as_ref()?, raw)
    }
}

/// A field that is an array of `char`, `u8` or `s8`: text up to its NUL, not necessarily UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct TextField;

/// A field that is an array of numbers, unless it is a [`TextField`].
#[derive(Debug, Clone, Copy)]
pub struct NumberArray;

/// Creates a reader of `field`; `None` if `is_fit` rejects the reader.
fn fitting_reader(
    tracepoint: &Tracepoint,
    field: &Field,
    is_fit: fn(&FieldReader) -> bool,
) -> Option<FieldReader> {
    Some(field.reader(tracepoint.abi.endian)).filter(is_fit)
}

/// Implements [`RequiredField`] for types of numbers: the type, the method of [`FieldReader`] that reads it, the conversion.
macro_rules! numbers {
    ($($number:ty: $read:ident, $convert:expr;)+) => {
        $(
            impl RequiredField for $number {
                const EXPECTED: &'static str = "a number";
                type Reader = FieldReader;
                type Value<'r> = $number;

                fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<FieldReader> {
                    fitting_reader(tracepoint, field, FieldReader::is_number)
                }

                fn bytes_reader(reader: &FieldReader) -> &FieldReader {
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

// An `i32` or `u32` is also read from wider fields, such as an argument of a system call, which is recorded as a 64-bit
// register: the kernel ignores the upper half, too.
numbers! {
    i32: i64, |number| number as i32;
    u32: u64, |number| number as u32;
    i64: i64, |number| number;
    u64: u64, |number| number;
    bool: u64, |number| number != 0;
}

impl RequiredField for TextField {
    const EXPECTED: &'static str = "text";
    type Reader = FieldReader;
    type Value<'r> = &'r [u8];

    fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<FieldReader> {
        fitting_reader(tracepoint, field, FieldReader::is_text)
    }

    fn bytes_reader(reader: &FieldReader) -> &FieldReader {
        reader
    }

    #[inline]
    fn read<'r>(reader: &FieldReader, raw: &'r [u8]) -> Option<&'r [u8]> {
        reader.text(raw)
    }
}

impl RequiredField for NumberArray {
    const EXPECTED: &'static str = "an array of numbers";
    type Reader = FieldReader;
    type Value<'r> = Elements<'r>;

    fn reader(tracepoint: &Tracepoint, field: &Field) -> Option<FieldReader> {
        fitting_reader(tracepoint, field, FieldReader::is_array)
    }

    fn bytes_reader(reader: &FieldReader) -> &FieldReader {
        reader
    }

    #[inline]
    fn read<'r>(reader: &FieldReader, raw: &'r [u8]) -> Option<Elements<'r>> {
        reader.elements(raw)
    }
}
