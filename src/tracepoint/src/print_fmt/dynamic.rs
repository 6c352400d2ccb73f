//! Location of dynamic data, for text.

use rperf_wire::Endian;

use crate::value::read_number;

/// Offset and length of the data of a dynamic field at `offset` with `size` bytes. The offset is
/// within `raw` or 0; a length beyond the end of `raw` is 0.
pub(super) fn dynamic_place(
    raw: &[u8],
    offset: usize,
    size: usize,
    is_relative: bool,
    endian: Endian,
) -> (usize, usize) {
    let Some(word) = read_number(raw, offset, size, endian) else {
        return (0, 0);
    };
    let mut start = usize::from((word & 0xffff) as u16);
    if is_relative {
        start += offset + size;
    }
    let length = if size == 2 {
        raw.len().saturating_sub(start)
    } else {
        usize::from((word >> 16 & 0xffff) as u16)
    };
    if start > raw.len() {
        return (0, 0);
    }
    (
        start,
        if start + length > raw.len() {
            0
        } else {
            length
        },
    )
}
