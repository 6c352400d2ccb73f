//! The fields of tracepoints: keys that a recording brings along.

use std::cmp::Reverse;

use super::{Key, Pads, Part, Reads, Subject};
use crate::names::Names;

/// A field of a tracepoint that is a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceField {
    /// The tracepoint's place in the recording.
    pub(crate) event: usize,
    /// Its place among all such keys.
    pub(crate) number: usize,
}

impl Key {
    /// The key of the field `name` of the tracepoint at `event`, the `number`th of all such keys from 0; `full_name` tells
    /// it from others. [`PayloadText::fields`] gives its values.
    ///
    /// Keys last as long as the program: a command line names a handful of them, once.
    ///
    /// [`PayloadText::fields`]: crate::PayloadText::fields
    #[must_use]
    pub fn of_field(event: usize, number: usize, name: &str, full_name: &str) -> &'static Self {
        let lasting = |text: &str| -> &'static str { Box::leak(text.into()) };
        Box::leak(Box::new(Self::plain(
            (lasting(full_name), lasting(name)),
            Reads::Field(TraceField { event, number }),
            Pads::Before,
            rank,
            |subject, names| match names.field(subject) {
                Some(value) => value.text.clone(),
                None => "N/A".to_owned(),
            },
        )))
    }
}

fn rank<'n>(subject: &Subject<'_>, names: &'n dyn Names) -> Part<'n> {
    let value = names.field(subject);
    value.map_or(Part::Absent, |value| Part::Bytes(Reverse(&value.bytes)))
}
