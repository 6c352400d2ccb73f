//! Strings of feature sections: a 32-bit length, then the bytes, NUL, and zeros up to that length,
//! a multiple of 64 in what perf writes.

use rperf_wire::{Cursor, DecodeError, until_nul};

/// Takes one string. What is not UTF-8 is replaced.
pub(crate) fn take(at: &mut Cursor<'_>) -> Result<String, DecodeError> {
    let size = at.u32("string length")?;
    let bytes = at.take(size as usize, "string")?;
    Ok(String::from_utf8_lossy(until_nul(bytes)).into_owned())
}

/// Takes a 32-bit count and that many strings.
pub(crate) fn take_list(at: &mut Cursor<'_>) -> Result<Vec<String>, DecodeError> {
    let count = at.u32("string count")?;
    (0..count).map(|_| take(at)).collect()
}
