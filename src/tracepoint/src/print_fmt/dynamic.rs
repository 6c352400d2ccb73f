//! Location of the data of dynamic fields, for printing.

use rperf_wire::Endian;

use crate::value::read_number;

/// Returns the start in `raw` and the length of a dynamic field's data, located by the word of `size` bytes at `offset`. The low
/// 16 bits of the word are the start, from the end of the word if `is_relative` (`__rel_loc`), otherwise from the start of `raw`
/// (`__data_loc`). The next 16 bits are the length; a word of two bytes has none: the data extends to the end of `raw`. Start and
/// length are 0 if the word or the start of the data is beyond the end of `raw`. If the data starts in `raw` but ends beyond it,
/// the length is 0.
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
