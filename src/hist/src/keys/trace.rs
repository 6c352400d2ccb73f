//! `trace`: the payload of a tracepoint, as text; `N/A` for other events.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue};
use crate::names::RecordingNames;

pub(super) static TRACE: Key = Key {
    name: "trace",
    title: "Trace output",
    // No minimum width if a function is unknown: this column shows no functions.
    unresolved_width: 0,
    pads: CellPadding::UnlessLast,
    reads: KeyDependency::Payload,
    identity: payload_rank,
    rank: payload_rank,
    text: |input, names| match input.context.payload {
        Some(payload) => names.payload(payload).to_owned(),
        None => "N/A".to_owned(),
    },
};

/// The place of the payload among all payloads in order of their bytes, so that samples with equal payloads share a row.
fn payload_rank<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let payload = input.context.payload;
    payload.map_or(KeyValue::Absent, |payload| {
        KeyValue::Number(names.payload_rank(payload).into())
    })
}
