//! Tracepoint fields: keys that depend on the recording.

use std::cmp::Reverse;

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, label};
use crate::names::RecordingNames;

/// A tracepoint field used as a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceField {
    /// Index of the tracepoint in the recording.
    pub(crate) event: usize,
    /// Index among all keys of tracepoint fields.
    pub(crate) number: usize,
}

impl Key {
    /// The key of the field `name` of the tracepoint with index `event`. `number` is the index of the key among all keys of
    /// fields. `full_name` is the key's unique name, `name` its title. [`PayloadText::fields`] returns the values.
    ///
    /// The key is never freed: a command selects few fields, at most all those of the recorded tracepoints.
    ///
    /// [`PayloadText::fields`]: crate::PayloadText::fields
    #[must_use]
    pub fn of_field(event: usize, number: usize, name: &str, full_name: &str) -> &'static Self {
        let lasting = |text: &str| -> &'static str { Box::leak(text.into()) };
        Box::leak(Box::new(Self::plain(
            label(lasting(full_name), lasting(name)),
            KeyDependency::Field(TraceField { event, number }),
            CellPadding::Before,
            value,
            |input, names| match names.field(input) {
                Some(value) => value.text.clone(),
                None => "N/A".to_owned(),
            },
        )))
    }
}

/// The value to sort by: the field's bytes, compared in descending order.
fn value<'n>(input: &KeyInput<'_>, names: &'n dyn RecordingNames) -> KeyValue<'n> {
    let value = names.field(input);
    value.map_or(KeyValue::Absent, |value| {
        KeyValue::Bytes(Reverse(&value.bytes))
    })
}
