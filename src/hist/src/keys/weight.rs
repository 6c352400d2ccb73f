//! `weight`, `ins_lat` and those of single samples: what the hardware says a sample cost.

use super::{Fact, Key, Pads, Part, Reads};

pub(super) static LOCAL_WEIGHT: Key = Key::plain(
    ("local_weight", "Local Weight"),
    Reads::Fact(Fact::Weight),
    Pads::Always,
    |subject, names| descending(names.facts(subject).weight.whole),
    |subject, names| names.facts(subject).weight.whole.to_string(),
);

/// Of all samples of a row.
pub(super) static WEIGHT: Key = Key::plain(
    ("weight", "Weight"),
    Reads::Fact(Fact::Weight),
    Pads::Always,
    |subject, names| descending(names.facts(subject).weight.whole),
    |subject, names| {
        let weight = names.facts(subject).weight.whole;
        weight.wrapping_mul(subject.samples).to_string()
    },
);

pub(super) static LOCAL_INS_LAT: Key = Key::plain(
    ("local_ins_lat", "Local INSTR Latency"),
    Reads::Fact(Fact::Weight),
    Pads::Always,
    |subject, names| descending(names.facts(subject).weight.instruction),
    |subject, names| names.facts(subject).weight.instruction.to_string(),
);

pub(super) static INS_LAT: Key = Key::plain(
    ("ins_lat", "INSTR Latency"),
    Reads::Fact(Fact::Weight),
    Pads::Always,
    |subject, names| descending(names.facts(subject).weight.instruction),
    |subject, names| {
        let latency = names.facts(subject).weight.instruction;
        latency.wrapping_mul(subject.samples).to_string()
    },
);

/// The dearest first.
fn descending(number: u64) -> Part<'static> {
    Part::Number(number.cast_signed().wrapping_neg())
}
