//! `socket`: the CPU's socket.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, label};
use crate::names::RecordingNames;

pub(super) static SOCKET: Key = Key::plain(
    label("socket", "Socket"),
    KeyDependency::Cpu,
    CellPadding::Before,
    |input, names| KeyValue::Number(socket(input, names).into()),
    |input, names| match socket(input, names) {
        // At least three digits and the sign, as in perf; -1 if unknown. `{:03}` would count the sign as a digit.
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        socket => format!("{socket:03}"),
    },
);

fn socket(input: &KeyInput<'_>, names: &dyn RecordingNames) -> i32 {
    names.socket(input.context.cpu)
}
