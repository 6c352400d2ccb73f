//! `parent`: the function of the callchain that a regular expression fits.

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static PARENT: Key = Key::plain(
    ("parent", "Parent symbol"),
    Reads::Parent,
    Pads::Always,
    |subject, names| name(subject, names).map_or(Part::Absent, Part::Text),
    |subject, names| name(subject, names).unwrap_or("[other]").to_owned(),
);

fn name<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Option<&'n str> {
    Some(names.symbol(subject.context.parent?))
}
