//! LEB128 numbers. In debug information, most of them have one byte.

/// Reads an unsigned number at `at` and advances. `None` if it is incomplete or too large.
#[inline]
pub(super) fn unsigned(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    match first {
        0..0x80 => Some(first.into()),
        _ => unsigned_rest(bytes, at, (first & 0x7f).into()),
    }
}

/// Reads the bytes of an unsigned number after its first byte, whose low seven bits are `first`; returns the whole number.
fn unsigned_rest(bytes: &[u8], at: &mut usize, first: u64) -> Option<u64> {
    let mut value = first;
    let mut shift = 7;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        let part = u64::from(byte & 0x7f);
        // Bits beyond the 64th don't fit.
        if shift > 56 && part >> 64_u32.saturating_sub(shift) != 0 {
            return None;
        }
        value |= part.checked_shl(shift).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
    }
}

/// Reads a signed number at `at`, truncated to 64 bits, and advances. `None` if it is incomplete.
pub(super) fn signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut value = 0_i64;
    let mut shift = 0;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= i64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte < 0x80 {
            let sign = (-1_i64).checked_shl(shift).unwrap_or(0);
            return Some(if byte & 0x40 == 0 {
                value
            } else {
                value | sign
            });
        }
    }
}

/// Skips a number at `at`, signed or unsigned. `None` if it is incomplete.
#[inline]
pub(super) fn skip(bytes: &[u8], at: &mut usize) -> Option<()> {
    while *bytes.get(*at)? >= 0x80 {
        *at += 1;
    }
    *at += 1;
    Some(())
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, LittleEndian, Reader as _};
    use proptest::prelude::*;

    use super::*;

    /// Signed numbers may have zero padding, too.
    #[test]
    fn unsigned_numbers_exceed_64_bits_only_by_zero_padding() {
        for len in [9, 10, 11, 12, 40] {
            let mut bytes = vec![0x80; len];
            bytes.push(0);
            assert_eq!(unsigned(&bytes, &mut 0), Some(0));
            assert_eq!(signed(&bytes, &mut 0), Some(0));
            bytes[len] = 2;
            assert_eq!(unsigned(&bytes, &mut 0), None, "{len}");
        }
        let largest = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(unsigned(&largest, &mut 0), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn numbers_match_gimli(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0x80), Just(0xff)], 0..14)) {
            let slice = || EndianSlice::new(&bytes, LittleEndian);
            let mut theirs = slice();
            let expected = theirs.read_uleb128().ok();
            let mut at = 0;
            let found = unsigned(&bytes, &mut at);
            // Unlike gimli, `unsigned` allows trailing zero groups beyond 64 bits.
            prop_assert!(found == expected || expected.is_none());
            if expected.is_some() {
                prop_assert_eq!(at, bytes.len() - theirs.len());
                let mut skipped = 0;
                prop_assert_eq!(skip(&bytes, &mut skipped), Some(()));
                prop_assert_eq!(at, skipped);
            }
            let mut theirs = slice();
            if let Ok(expected) = theirs.read_sleb128() {
                let mut at = 0;
                prop_assert_eq!(signed(&bytes, &mut at), Some(expected));
                prop_assert_eq!(at, bytes.len() - theirs.len());
            }
        }
    }
}
