//! Location of the data of dynamic fields, for printing.

use rperf_wire::Endian;

use crate::value::read_number;

/// Offset and length of the data of a dynamic field, whose location is a word of `size` bytes at
/// `offset`. The offset in it counts from the end of the word if `is_relative` (`__rel_loc`), otherwise
/// from the start of `raw` (`__data_loc`). A word of two bytes has no length: the data extends to the end of `raw`. Offset and
/// length are 0 if the word or the start of the data is beyond the end of `raw`. If the data starts
/// in `raw` but ends beyond it, the length is 0.
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
    let Some(rest) = raw.len().checked_sub(start) else {
        return (0, 0);
    };
    let length = match size {
        2 => rest,
        _ => usize::from((word >> 16 & 0xffff) as u16),
    };
    (start, if length > rest { 0 } else { length })
}
