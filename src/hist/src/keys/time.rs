//! `time`: the time of samples, rounded down to a multiple of the time quantum.

use super::{CellPadding, Key, KeyDependency, KeyValue, Property, label};

pub(super) static TIME: Key = Key::plain(
    label("time", "Time"),
    KeyDependency::Property(Property::Time),
    CellPadding::UnlessLast,
    // Identity and rank.
    |input, names| KeyValue::Number(names.properties(input).time.cast_signed()),
    // Text of a cell.
    |input, names| {
        let time = names.properties(input).time;
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        match names.shows_nanoseconds() {
            true => format!("{seconds}.{rest:09}"),
            false => format!("{seconds}.{:06}", rest / 1000),
        }
    },
);
