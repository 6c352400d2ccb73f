//! `parallelism`: how many threads ran when the sample was taken.

use super::{Fact, Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static PARALLELISM: Key = Key::plain(
    ("parallelism", "Parallelism"),
    Reads::Fact(Fact::Parallelism),
    Pads::Before,
    |subject, names| Part::Number(threads(subject, names).into()),
    |subject, names| threads(subject, names).to_string(),
);

fn threads(subject: &Subject<'_>, names: &dyn Names) -> u32 {
    names.facts(subject).parallelism
}
