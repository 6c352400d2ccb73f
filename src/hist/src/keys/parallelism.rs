//! `parallelism`: the number of threads running at the sample.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, Property, label};
use crate::names::RecordingNames;

pub(super) static PARALLELISM: Key = Key::plain(
    label("parallelism", "Parallelism"),
    KeyDependency::Property(Property::Parallelism),
    CellPadding::Before,
    |input, names| KeyValue::Number(threads(input, names).into()),
    |input, names| threads(input, names).to_string(),
);

/// The number of running threads.
fn threads(input: &KeyInput<'_>, names: &dyn RecordingNames) -> u32 {
    names.properties(input).parallelism
}
