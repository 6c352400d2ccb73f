//! `cpu`: the processor.

use super::{Key, Pads, Part, Reads, Subject};

pub(super) static CPU: Key = Key {
    name: "cpu",
    title: "CPU",
    unresolved_width: 0,
    pads: Pads::Never,
    reads: Reads::Cpu,
    identity: |subject, _| Part::Number(number(subject).into()),
    rank: |subject, _| Part::Number(number(subject).into()),
    text: |subject, _| match number(subject) {
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        cpu => format!("{cpu:03}"),
    },
};

/// perf shows samples without a processor as those of processor -1.
fn number(subject: &Subject<'_>) -> i32 {
    subject.context.cpu.cast_signed()
}
