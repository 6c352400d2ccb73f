//! 64-bit Arm: branches by their encodings (Arm Architecture Reference Manual, "A64 Instruction Set Encoding").

use crate::Insn;

/// Encodings of branches: mask and value, and for direct branches the lowest bit and the width of the offset.
const BRANCHES: [(u32, u32, Option<(u32, u32)>); 6] = [
    // B, BL
    (0x7c00_0000, 0x1400_0000, Some((0, 26))),
    // B.cond, BC.cond
    (0xff00_0000, 0x5400_0000, Some((5, 19))),
    // CBZ, CBNZ
    (0x7e00_0000, 0x3400_0000, Some((5, 19))),
    // TBZ, TBNZ
    (0x7e00_0000, 0x3600_0000, Some((5, 14))),
    // BR, BLR, RET and ERET, also with pointer authentication, and DRPS
    (0xfe00_0000, 0xd600_0000, None),
    // SVC, HVC, SMC
    (0xffe0_001c, 0xd400_0000, None),
];

pub(crate) fn decode(bytes: &[u8]) -> Option<Insn> {
    // Instructions are little-endian for either byte order of data.
    let word = u32::from_le_bytes(*bytes.first_chunk()?);
    let branch = BRANCHES
        .iter()
        .find(|(mask, value, _)| word & mask == *value);
    let offset = branch.and_then(|(_, _, offset)| *offset);
    Some(Insn {
        len: 4,
        is_branch: branch.is_some(),
        displacement: offset.map(|(low, bits)| byte_offset(word, low, bits)),
    })
}

/// The signed number of words in `bits` bits from bit `low` on, converted to bytes.
fn byte_offset(word: u32, low: u32, bits: u32) -> i64 {
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
