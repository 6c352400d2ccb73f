//! Log-linear buckets, computed by BPF programs.

use crate::Condition::Below;
use crate::Operation::{Add, ShiftRight};
use crate::ProgramBuilder;
use crate::Register::{R1, R2, R3};

/// Replaces the number in `R1` by the index of its bucket. With n = 2 to the power of `sub_bits`, each number below n has its own
/// bucket; from n on, each range from a power of two to the next has n buckets. Changes `R2` and `R3`.
pub(crate) fn bucket_number(b: &mut ProgramBuilder, sub_bits: u32) {
    b.set(R2, 0);
    // Shifts right until the value has at most `sub_bits + 1` bits. The index of the bucket is this value, plus n for each bit
    // shifted out.
    for step in [32, 16, 8, 4, 2, 1] {
        let skip = b.label();
        b.set(R3, R1);
        b.operate(ShiftRight, R3, step);
        b.jump_if(Below, R3, 1 << sub_bits, skip);
        b.set(R1, R3);
        b.operate(Add, R2, step << sub_bits);
        b.place(skip);
    }
    b.operate(Add, R1, R2);
}
