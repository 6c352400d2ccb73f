//! 64-bit Arm: branches by their encodings (Arm Architecture Reference Manual, "A64 Instruction Set Encoding").

use crate::Insn;

/// The encodings of a kind of branch: the bits of `mask` have the value `value`.
struct Branch {
    mask: u32,
    value: u32,
    /// Where a direct branch has the offset of its target; `None` for other branches, which do not encode a target.
    offset: Option<BitField>,
}

/// Bits of an instruction.
#[derive(Clone, Copy)]
struct BitField {
    /// The number of the lowest bit.
    low: u32,
    width: u32,
}

impl Branch {
    const fn direct(mask: u32, value: u32, low: u32, width: u32) -> Self {
        Self {
            mask,
            value,
            offset: Some(BitField { low, width }),
        }
    }

    const fn indirect(mask: u32, value: u32) -> Self {
        Self {
            mask,
            value,
            offset: None,
        }
    }
}

const BRANCHES: [Branch; 6] = [
    // B, BL
    Branch::direct(0x7c00_0000, 0x1400_0000, 0, 26),
    // B.cond, BC.cond
    Branch::direct(0xff00_0000, 0x5400_0000, 5, 19),
    // CBZ, CBNZ
    Branch::direct(0x7e00_0000, 0x3400_0000, 5, 19),
    // TBZ, TBNZ
    Branch::direct(0x7e00_0000, 0x3600_0000, 5, 14),
    // BR, BLR, RET and ERET, also with pointer authentication, and DRPS
    Branch::indirect(0xfe00_0000, 0xd600_0000),
    // SVC, HVC, SMC: system calls count as branches, see `Insn::is_branch`. The mask excludes BRK and HLT.
    Branch::indirect(0xffe0_001c, 0xd400_0000),
];

pub(crate) fn decode(bytes: &[u8]) -> Option<Insn> {
    // Instructions are little-endian for either byte order of data.
    let word = u32::from_le_bytes(*bytes.first_chunk()?);
    let branch = BRANCHES
        .iter()
        .find(|branch| word & branch.mask == branch.value);
    let offset = branch.and_then(|branch| branch.offset);
    Some(Insn {
        len: 4,
        is_branch: branch.is_some(),
        target_offset: offset.map(|field| byte_offset(word, field)),
    })
}

/// Returns the offset in bytes that `field` encodes as a signed number of words (instructions).
fn byte_offset(word: u32, field: BitField) -> i64 {
    let BitField { low, width } = field;
    // The shift to the right extends the sign.
    let words = (word << (32 - low - width)).cast_signed() >> (32 - width);
    i64::from(words) * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_and_others() {
        for (word, is_branch, target_offset) in [
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
            assert_eq!(insn.target_offset, target_offset, "{word:#x}");
        }
        assert_eq!(decode(&[0x1f, 0x20, 0x03]), None);
    }
}
