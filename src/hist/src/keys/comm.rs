//! `comm`: the name of the task.

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static COMM: Key = Key {
    name: "comm",
    title: "Command",
    unresolved_width: 0,
    pads: Pads::Always,
    reads: Reads::Comm,
    identity: |subject, names| Part::Text(name(subject, names)),
    rank: |subject, names| Part::Text(name(subject, names)),
    text: |subject, names| name(subject, names).to_owned(),
};

fn name<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> &'n str {
    let comm = subject.context.comm;
    comm.map_or("", |comm| names.comm(comm))
}
