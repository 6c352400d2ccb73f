//! `parallelism`: the number of threads running at the sample.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, Property, label};
use crate::names::RecordingNames;

pub(super) static PARALLELISM: Key = Key::plain(
    label("parallelism", "Parallelism"),
    KeyDependency::Property(Property::Parallelism),
    CellPadding::Before,
    |subject, names| KeyValue::Number(threads(subject, names).into()),
    |subject, names| threads(subject, names).to_string(),
);

fn threads(subject: &KeyInput<'_>, names: &dyn RecordingNames) -> u32 {
    names.facts(subject).parallelism
}
