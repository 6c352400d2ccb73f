//! `dso`: the object that the code belongs to, by its short name: objects of one name are one row.

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static DSO: Key = Key {
    name: "dso",
    title: "Shared Object",
    unresolved_width: 16,
    pads: Pads::Always,
    reads: Reads::Site,
    identity: name,
    rank: name,
    text: |subject, names| match name(subject, names) {
        Part::Text(name) => name.to_owned(),
        _ => "[unknown]".to_owned(),
    },
};

fn name<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    subject
        .site
        .dso
        .map_or(Part::Absent, |dso| Part::Text(names.dso(dso)))
}
