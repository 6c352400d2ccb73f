//! `weight`, `ins_lat` and `retire_lat`, and their variants `local_*`: sample weights of the hardware. Both variants sort rows by
//! the weight of a single sample; `local_*` also show that weight, the others show the sum over the samples of the row.
//!
//! `weight.total` is no such sum: it is the whole weight of a single sample, or the first part of a weight with parts
//! (`PERF_SAMPLE_WEIGHT_STRUCT`).

use super::{CellPadding, Key, KeyDependency, KeyValue, Property, label};

pub(super) static LOCAL_WEIGHT: Key = Key::plain(
    label("local_weight", "Local Weight"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.total),
    |input, names| names.properties(input).weight.total.to_string(),
);

/// Shows the sum over the samples of a row, all of which have the same weight.
pub(super) static WEIGHT: Key = Key::plain(
    label("weight", "Weight"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.total),
    |input, names| {
        let weight = names.properties(input).weight.total;
        weight.wrapping_mul(input.samples).to_string()
    },
);

/// The second part of a weight: the latency of the instruction.
pub(super) static LOCAL_INS_LAT: Key = Key::plain(
    label("local_ins_lat", "Local INSTR Latency"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.instruction),
    |input, names| names.properties(input).weight.instruction.to_string(),
);

/// Shows the sum over the samples of a row, all of which have the same latency.
pub(super) static INS_LAT: Key = Key::plain(
    label("ins_lat", "INSTR Latency"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.instruction),
    |input, names| {
        let latency = names.properties(input).weight.instruction;
        latency.wrapping_mul(input.samples).to_string()
    },
);

/// The third part of a weight: on x86 the cycles between the retirement of the previous instruction and of this one.
pub(super) static LOCAL_RETIRE_LAT: Key = Key::plain(
    label("local_retire_lat", "Local Retire Latency"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.retirement),
    |input, names| names.properties(input).weight.retirement.to_string(),
);

/// Shows the sum over the samples of a row, all of which have the same latency.
pub(super) static RETIRE_LAT: Key = Key::plain(
    label("retire_lat", "Retire Latency"),
    KeyDependency::Property(Property::Weight),
    CellPadding::Always,
    |input, names| descending(names.properties(input).weight.retirement),
    |input, names| {
        let latency = names.properties(input).weight.retirement;
        latency.wrapping_mul(input.samples).to_string()
    },
);

/// A value that sorts the highest number first.
fn descending(number: u64) -> KeyValue<'static> {
    KeyValue::Number(number.cast_signed().wrapping_neg())
}
