//! `parent`: the first function of the callchain, in call graph order, that matches the regular expression of `--parent`.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, label};
use crate::names::RecordingNames;

pub(super) static PARENT: Key = Key::plain(
    label("parent", "Parent symbol"),
    KeyDependency::Parent,
    // As in perf, padded even in the last column.
    CellPadding::Always,
    |input, names| name(input, names).map_or(KeyValue::Absent, KeyValue::Text),
    |input, names| name(input, names).unwrap_or("[other]").to_owned(),
);

fn name<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> Option<&'n str> {
    Some(names.symbol(input.context.parent?))
}
