//! Numbers in the keys and values of maps, in the byte order of this machine. Offsets are mostly `i16`, as in the BPF
//! instructions that write the keys and values; a negative offset is outside the bytes.

/// Returns the 64-bit number at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn number(bytes: &[u8], at: i16) -> u64 {
    let bytes = from_offset(bytes, at).first_chunk();
    bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// Returns the 32-bit number at an offset in bytes; 0 if it is not entirely within `bytes`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// Returns the bytes from an offset on; none if it is not within `bytes`.
pub(crate) fn from_offset(bytes: &[u8], at: i16) -> &[u8] {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    bytes.get(at..).unwrap_or_default()
}

/// Returns the command name in the 16 bytes from an offset on, without the NUL.
pub(crate) fn command_name(bytes: &[u8], at: i16) -> Vec<u8> {
    let comm = from_offset(bytes, at);
    let comm = comm.get(..16).unwrap_or(comm).split(|byte| *byte == 0);
    comm.take(1).flatten().copied().collect()
}
