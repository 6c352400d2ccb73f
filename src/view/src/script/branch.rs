//! One entry of a branch stack: `struct perf_branch_entry` of linux/perf_event.h.

use crate::digits;

// Bits of `BranchEntry::flags`.
pub(crate) const MISPREDICTED: u64 = 1;
pub(crate) const PREDICTED: u64 = 1 << 1;
pub(crate) const IN_TRANSACTION: u64 = 1 << 2;
pub(crate) const ABORTED: u64 = 1 << 3;

/// Appends what follows the addresses of an entry: prediction, transaction, abort, cycles and type. Examples are
/// `/M/-/-/0/COND `, and `/M/-/-/0/ ` without a type.
pub(super) fn flags(flags: u64, out: &mut Vec<u8>) {
    let has = |bit: u64| flags & bit != 0;
    let prediction = if has(PREDICTED) {
        b'P'
    } else if has(MISPREDICTED) {
        b'M'
    } else {
        b'-'
    };
    let in_transaction = if has(IN_TRANSACTION) { b'X' } else { b'-' };
    let aborted = if has(ABORTED) { b'A' } else { b'-' };
    for letter in [prediction, in_transaction, aborted] {
        out.extend_from_slice(&[b'/', letter]);
    }
    out.push(b'/');
    let cycles = flags >> 4 & 0xffff;
    digits::decimal(out, cycles, 0);
    out.push(b'/');
    out.extend_from_slice(kind(flags).as_bytes());
    out.push(b' ');
}

/// Returns perf's name of a branch's type: `PERF_BR_*`, or `PERF_BR_NEW_*` for `PERF_BR_EXTEND_ABI`. Empty for
/// `PERF_BR_UNKNOWN`, `(null)` for an extended type that perf does not know.
pub(crate) fn kind(flags: u64) -> &'static str {
    let (basic_type, extended_type) = (flags >> 20 & 0xf, flags >> 26 & 0xf);
    match (basic_type, extended_type) {
        (1, _) => "COND",
        (2, _) => "UNCOND",
        (3, _) => "IND",
        (4, _) => "CALL",
        (5, _) => "IND_CALL",
        (6, _) => "RET",
        (7, _) => "SYSCALL",
        (8, _) => "SYSRET",
        (9, _) => "COND_CALL",
        (10, _) => "COND_RET",
        (11, _) => "ERET",
        (12, _) => "IRQ",
        (13, _) => "SERROR",
        (14, _) => "NO_TX",
        (15, 0) => "FAULT_ALGN",
        (15, 1) => "FAULT_DATA",
        (15, 2) => "FAULT_INST",
        (15, 3) => "ARCH_1",
        (15, 4) => "ARCH_2",
        (15, 5) => "ARCH_3",
        (15, 6) => "ARCH_4",
        (15, 7) => "ARCH_5",
        // perf has no name, and passes a null pointer to printf(3), which prints this text.
        (15, _) => "(null)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn flags_cycles_and_type_are_written() {
        let text = |flags| {
            let mut out = Vec::new();
            super::flags(flags, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0), "/-/-/-/0/ ");
        assert_eq!(text(1), "/M/-/-/0/ ");
        assert_eq!(text(2 | 4 | 8 | 77 << 4 | 6 << 20), "/P/X/A/77/RET ");
        assert_eq!(text(15 << 20 | 2 << 26), "/-/-/-/0/FAULT_INST ");
        assert_eq!(text(u64::MAX), "/P/X/A/65535/(null) ");
    }
}
