//! `trace`: what a tracepoint tells, as script prints it. Other events have nothing to tell.

use super::{Key, Part, Reads, Subject};
use crate::names::Names;

pub(super) static TRACE: Key = Key {
    name: "trace",
    title: "Trace output",
    unresolved_width: 0,
    pads: false,
    reads: Reads::Payload,
    identity: text,
    rank: text,
    text: |subject, names| match text(subject, names) {
        Part::Text(text) => text.to_owned(),
        _ => "N/A".to_owned(),
    },
};

fn text<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    let payload = subject.context.payload;
    payload.map_or(Part::Absent, |payload| Part::Text(names.payload(payload)))
}
