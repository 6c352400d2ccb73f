//! Numbers in the keys and values of maps.

/// Returns the number of 64 bits at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn number(bytes: &[u8], at: i16) -> u64 {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Returns the number of 32 bits at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}
