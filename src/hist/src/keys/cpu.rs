//! `cpu`: the CPU.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue};

pub(super) static CPU: Key = Key {
    name: "cpu",
    title: "CPU",
    // The column's width does not depend on rows whose function is unknown, unlike that of objects and symbols.
    unresolved_width: 0,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Cpu,
    identity: |input, _| KeyValue::Number(number(input).into()),
    rank: |input, _| KeyValue::Number(number(input).into()),
    // As with `%.3d` in perf, the sign is not one of the three digits.
    text: |input, _| match number(input) {
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        cpu => format!("{cpu:03}"),
    },
};

/// The CPU; as in perf, -1 if not recorded.
fn number(input: &KeyInput<'_>) -> i32 {
    input.context.cpu.cast_signed()
}
