//! Numbers in the keys and values of maps, in the byte order of this machine.

/// Returns the 64-bit number at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn number(bytes: &[u8], at: i16) -> u64 {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Returns the 32-bit number at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
