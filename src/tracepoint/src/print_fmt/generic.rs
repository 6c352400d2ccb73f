//! The generic form of an event whose `print fmt` is not supported: ` name=value …`.

use super::digits::{put_decimal, put_hex_byte, put_prefixed_hex, put_signed};
use super::dynamic::dynamic_place;
use crate::value::read_number;
use crate::{Abi, Field, Format};

/// Appends all `fields` of the record `raw`.
pub(super) fn write_fields(fields: &[Field], raw: &[u8], abi: Abi, out: &mut Vec<u8>) {
    for field in fields {
        out.push(b' ');
        out.extend_from_slice(field.name.as_bytes());
        out.push(b'=');
        field.write(raw, abi, out);
    }
}

impl Format {
    /// Appends all fields of the event in the record `raw` as ` name=value …`, without using the
    /// `print fmt`.
    pub fn write_fields(&self, raw: &[u8], abi: Abi, out: &mut Vec<u8>) {
        write_fields(&self.fields, raw, abi, out);
    }
}

impl Field {
    /// Appends the field's value in the record `raw` like Linux perf without a `print fmt`. Data
    /// beyond the end of `raw` are 0 or empty.
    pub fn write(&self, raw: &[u8], abi: Abi, out: &mut Vec<u8>) {
        if self.is_array {
            write_array(self, raw, abi, out);
        } else {
            write_number(self, raw, abi, out);
        }
    }
}

/// Appends a printable string as text, any other string or array as `ARRAY[01, 02]`.
fn write_array(field: &Field, raw: &[u8], abi: Abi, out: &mut Vec<u8>) {
    let (start, size) = if field.is_dynamic {
        dynamic_place(raw, field.offset, field.size, field.is_relative, abi.endian)
    } else {
        (field.offset, field.size)
    };
    let rest = raw.get(start..).unwrap_or_default();
    let bytes = rest.get(..size).unwrap_or(rest);
    if field.is_string && is_printable(bytes) {
        // As in perf, text that fills its field without a NUL continues in the bytes after the field, to the next NUL.
        out.extend_from_slice(rperf_wire::until_nul(rest));
        return;
    }
    out.extend_from_slice(b"ARRAY[");
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        put_hex_byte(out, *byte);
    }
    out.push(b']');
}

/// Whether the bytes up to the first NUL are printable ASCII or white space.
fn is_printable(bytes: &[u8]) -> bool {
    rperf_wire::until_nul(bytes)
        .iter()
        .all(|byte| matches!(byte, b' '..=b'~' | b'\t'..=b'\r'))
}

fn write_number(field: &Field, raw: &[u8], abi: Abi, out: &mut Vec<u8>) {
    let value = read_number(raw, field.offset, field.size, abi.endian).unwrap_or(0);
    if field.is_pointer {
        return put_prefixed_hex(out, value);
    }
    if !field.is_signed {
        return match field.is_long {
            true => put_prefixed_hex(out, value),
            false => put_decimal(out, value),
        };
    }
    // As in libtraceevent: `0x%x` for a long of 4 bytes, `%2d` for 2 bytes.
    match field.size {
        4 if field.is_long => put_prefixed_hex(out, value),
        4 => put_signed(out, (value as i32).into()),
        2 => {
            let value = value as i16;
            if (0..10).contains(&value) {
                out.push(b' ');
            }
            put_signed(out, value.into());
        }
        1 => put_signed(out, (value as i8).into()),
        _ => put_signed(out, value.cast_signed()),
    }
}
