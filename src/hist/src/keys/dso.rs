//! `dso`: the object that contains the code. Objects with the same name share a row.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue};
use crate::names::RecordingNames;

pub(super) static DSO: Key = Key {
    name: "dso",
    title: "Shared Object",
    // As in perf: the digits of a 64-bit address, although this column shows none.
    unresolved_width: 16,
    pads: CellPadding::Always,
    reads: KeyDependency::Site,
    identity: name,
    rank: name,
    text: |input, names| match name(input, names) {
        KeyValue::Text(name) => name.to_owned(),
        _ => "[unknown]".to_owned(),
    },
};

fn name<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    input
        .site
        .dso
        .map_or(KeyValue::Absent, |dso| KeyValue::Text(names.dso(dso)))
}
