//! `srcline` and `srcfile`: where in the source the code is.

use super::{Key, Line, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static SRCLINE: Key = Key {
    name: "srcline",
    title: "Source:Line",
    unresolved_width: 0,
    pads: Pads::Never,
    reads: Reads::Site,
    identity: |subject, names| Part::Text(line(subject, names)),
    rank: |subject, names| Part::Text(line(subject, names)),
    text: |subject, names| line(subject, names).to_owned(),
};

pub(super) static SRCFILE: Key = Key {
    name: "srcfile",
    title: "Source File",
    unresolved_width: 0,
    pads: Pads::Never,
    reads: Reads::Site,
    identity: |subject, names| Part::Text(file(subject, names)),
    rank: |subject, names| Part::Text(file(subject, names)),
    text: |subject, names| file(subject, names).to_owned(),
};

/// What is shown where nothing is known.
const UNKNOWN: &str = "??:0";

fn line<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> &'n str {
    match subject.site.line {
        Line::None => UNKNOWN,
        Line::Known(line) | Line::Address(line) => names.line(line),
    }
}

/// Nothing for code of which only the function is known.
fn file<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> &'n str {
    match line(subject, names) {
        UNKNOWN => "",
        line => line.split_once(':').map_or("", |(file, _)| file),
    }
}
