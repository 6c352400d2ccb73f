//! `trace`: what a tracepoint tells, as script prints it. Other events have nothing to tell.

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

pub(super) static TRACE: Key = Key {
    name: "trace",
    title: "Trace output",
    unresolved_width: 0,
    pads: Pads::Never,
    reads: Reads::Payload,
    identity: rank,
    rank,
    text: |subject, names| match subject.context.payload {
        Some(payload) => names.payload(payload).to_owned(),
        None => "N/A".to_owned(),
    },
};

fn rank<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    let payload = subject.context.payload;
    payload.map_or(Part::Absent, |payload| {
        Part::Number(names.payload_rank(payload).into())
    })
}
