//! `socket`: the CPU's socket.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, label};
use crate::names::RecordingNames;

pub(super) static SOCKET: Key = Key::plain(
    label("socket", "Socket"),
    KeyDependency::Cpu,
    CellPadding::Before,
    |subject, names| KeyValue::Number(socket(subject, names).into()),
    |subject, names| match socket(subject, names) {
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        socket => format!("{socket:03}"),
    },
);

fn socket(subject: &KeyInput<'_>, names: &dyn RecordingNames) -> i32 {
    names.socket(subject.context.cpu)
}
