//! `cpu`: the CPU.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue};

pub(super) static CPU: Key = Key {
    name: "cpu",
    title: "CPU",
    unresolved_width: 0,
    pads: CellPadding::Never,
    reads: KeyDependency::Cpu,
    identity: |subject, _| KeyValue::Number(number(subject).into()),
    rank: |subject, _| KeyValue::Number(number(subject).into()),
    text: |subject, _| match number(subject) {
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        cpu => format!("{cpu:03}"),
    },
};

/// perf shows samples without a CPU as CPU -1.
fn number(subject: &KeyInput<'_>) -> i32 {
    subject.context.cpu.cast_signed()
}
