//! 64-bit Arm: branches by their encodings (Arm Architecture Reference Manual, C4.1.66).

use crate::Insn;

/// Encodings of branches: mask and value.
const BRANCHES: [(u32, u32); 6] = [
    // B, BL
    (0x7c00_0000, 0x1400_0000),
    // B.cond, BC.cond
    (0xff00_0000, 0x5400_0000),
    // CBZ, CBNZ
    (0x7e00_0000, 0x3400_0000),
    // TBZ, TBNZ
    (0x7e00_0000, 0x3600_0000),
    // BR, BLR, RET, ERET
    (0xfe00_0000, 0xd600_0000),
    // SVC, HVC, SMC
    (0xffe0_001c, 0xd400_0000),
];

pub(crate) fn decode(bytes: &[u8]) -> Option<Insn> {
    // Instructions are little-endian for either byte order of data.
    let word = u32::from_le_bytes(*bytes.first_chunk()?);
    let kind = BRANCHES
        .iter()
        .position(|(mask, value)| word & mask == *value);
    let displacement = match kind {
        Some(0) => Some(field(word, 0, 26)),
        Some(1 | 2) => Some(field(word, 5, 19)),
        Some(3) => Some(field(word, 5, 14)),
        _ => None,
    };
    Some(Insn {
        len: 4,
        is_branch: kind.is_some(),
        displacement,
    })
}

/// A signed word offset in `bits` bits from bit `low` on, converted to bytes.
fn field(word: u32, low: u32, bits: u32) -> i64 {
    let shifted = (word << (32 - low - bits)).cast_signed() >> (32 - bits);
    i64::from(shifted) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_others() {
        for (word, is_branch, displacement) in [
            (0x9400_0003_u32, true, Some(12)), // bl .+12
            (0x17ff_ffff, true, Some(-4)),     // b .-4
            (0x54ff_ffe1, true, Some(-4)),     // b.ne .-4
            (0xb400_0040, true, Some(8)),      // cbz x0, .+8
            (0x3707_ffc0, true, Some(-8)),     // tbnz w0, #0, .-8
            (0xd65f_03c0, true, None),         // ret
            (0xd61f_0220, true, None),         // br x17
            (0xd400_0001, true, None),         // svc #0
            (0xd503_201f, false, None),        // nop
            (0xa9be_7bfd, false, None),        // stp x29, x30, [sp, #-32]!
            (0xd421_0000, false, None),        // brk #0x800
        ] {
            let insn = decode(&word.to_le_bytes()).unwrap();
            assert_eq!((insn.len, insn.is_branch), (4, is_branch), "{word:#x}");
            assert_eq!(insn.displacement, displacement, "{word:#x}");
        }
        assert_eq!(decode(&[0x1f, 0x20, 0x03]), None);
    }
}
