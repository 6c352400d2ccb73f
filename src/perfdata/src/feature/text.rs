//! Strings in feature sections: a 32-bit length, then the bytes, NUL, and zeros up to that length,
//! which perf rounds up to a multiple of 64. The strings of simpleperf's key-value pairs are terminated by NUL, without a length
//! or padding.

use rperf_wire::{Cursor, DecodeError, Encoder, until_nul};

/// Alignment of string lengths in perf, in bytes.
pub(crate) const ALIGN: usize = 64;

/// Reads a string; invalid UTF-8 is replaced.
pub(crate) fn take(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let size = at.u32("string length")?;
    let bytes = at.take(size as usize, "string")?;
    Ok(String::from_utf8_lossy(until_nul(bytes)).into_owned())
}

/// Reads a 32-bit count and that many strings.
pub(crate) fn take_list(at: &mut Cursor<'_>) -> Result<Vec<String>, DecodeError> {
    let count = at.u32("string count")?;
    (0..count).map(|_| take(at)).collect()
}

/// Appends a string with its length and padding.
pub(crate) fn put(to: &mut Encoder<'_>, text: &str) {
    let size = (text.len() + 1).next_multiple_of(ALIGN);
    to.u32(u32::try_from(size).unwrap_or(u32::MAX));
    to.padded_str(text.as_bytes(), ALIGN);
}

/// Appends a 32-bit count and that many strings.
pub(crate) fn put_list<T: AsRef<str>>(to: &mut Encoder<'_>, strings: &[T]) {
    put_count(to, strings.len());
    for text in strings {
        put(to, text.as_ref());
    }
}

/// Appends a 32-bit count or size.
pub(crate) fn put_count(to: &mut Encoder<'_>, count: usize) {
    to.u32(u32::try_from(count).unwrap_or(u32::MAX));
}

/// Reads pairs of key and value to the end, each string terminated by NUL.
pub(crate) fn take_pairs(at: &mut Cursor<'_>) -> Result<Vec<(String, String)>, DecodeError> {
    let mut next = || {
        let text = until_nul(at.rest());
        at.take(text.len() + 1, "key or value")?;
        Ok(String::from_utf8_lossy(text).into_owned())
    };
    let mut pairs = Vec::new();
    loop {
        // A missing or unterminated key ends the list; a missing value is an error.
        let Ok(key) = next() else { return Ok(pairs) };
        pairs.push((key, next()?));
    }
}

/// Appends pairs of key and value, each string terminated by NUL.
pub(crate) fn put_pairs(to: &mut Encoder<'_>, pairs: &[(String, String)]) {
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        to.bytes(text.as_bytes());
        to.zeros(1);
    }
}
