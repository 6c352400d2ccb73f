//! `srcline` and `srcfile`: the source location of code.
//!
//! `unresolved_width` is 0: rows without a known function do not widen these columns.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, LocationText};
use crate::names::RecordingNames;

pub(super) static SRCLINE: Key = Key {
    name: "srcline",
    title: "Source:Line",
    unresolved_width: 0,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Site,
    identity: |input, names| KeyValue::Text(line(input, names)),
    rank: |input, names| KeyValue::Text(line(input, names)),
    text: |input, names| line(input, names).to_owned(),
};

pub(super) static SRCFILE: Key = Key {
    name: "srcfile",
    title: "Source File",
    unresolved_width: 0,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Site,
    identity: |input, names| KeyValue::Text(file(input, names)),
    rank: |input, names| KeyValue::Text(file(input, names)),
    text: |input, names| file(input, names).to_owned(),
};

/// Text for unknown locations.
pub(super) const UNKNOWN: &str = "??:0";

fn line<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> &'n str {
    match input.site.line {
        // No line, function or object is known.
        LocationText::None => UNKNOWN,
        // `Address` is code without a known line: `FUNCTION+OFFSET` or `OBJECT[ADDRESS]`.
        LocationText::Known(line) | LocationText::Address(line) => names.line(line),
    }
}

/// The name of the file: as in perf, the text before the first colon of `FILE:LINE`. Empty if the line is unknown.
fn file<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> &'n str {
    match input.site.line {
        LocationText::Known(line) => {
            let line = names.line(line);
            line.split_once(':').map_or("", |(file, _)| file)
        }
        // The name of a function can have colons.
        LocationText::Address(_) | LocationText::None => "",
    }
}
