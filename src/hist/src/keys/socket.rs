//! `socket`: the processor's socket.

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static SOCKET: Key = Key::plain(
    ("socket", "Socket"),
    Reads::Cpu,
    Pads::Before,
    |subject, names| Part::Number(socket(subject, names).into()),
    |subject, names| match socket(subject, names) {
        negative @ ..0 => format!("-{:03}", negative.unsigned_abs()),
        socket => format!("{socket:03}"),
    },
);

fn socket(subject: &Subject<'_>, names: &dyn Names) -> i32 {
    names.socket(subject.context.cpu)
}
