//! `time`: when samples were taken, in steps of the time quantum.

use super::{Fact, Key, Pads, Part, Reads};

pub(super) static TIME: Key = Key::plain(
    ("time", "Time"),
    Reads::Fact(Fact::Time),
    Pads::Never,
    |subject, names| Part::Number(names.facts(subject).time.cast_signed()),
    |subject, names| {
        let time = names.facts(subject).time;
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        match names.shows_nanoseconds() {
            true => format!("{seconds}.{rest:09}"),
            false => format!("{seconds}.{:06}", rest / 1000),
        }
    },
);
