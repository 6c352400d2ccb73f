//! The fields of tracepoints, by name.

use rperf_perfdata::{Described, Error, EventDesc};

/// The own fields of every tracepoint of a recording; those that all tracepoints have are not among them.
#[derive(Debug)]
pub struct TraceFields {
    events: Vec<Fields>,
}

#[derive(Debug)]
enum Fields {
    NoTracepoint,
    Known(Vec<String>),
    /// The recording says nothing of it, or nothing that can be read.
    Unknown(String),
}

impl TraceFields {
    /// Reads the descriptions of the tracepoints in a recording.
    ///
    /// # Errors
    /// As [`Described::formats`].
    pub fn new(recording: Described<'_>) -> Result<Self, Error> {
        let formats = recording.formats()?;
        let fields = |event: &EventDesc| match formats.of_event(&event.attr) {
            Ok(tracepoint) => {
                let fields = tracepoint.format.fields.iter();
                Fields::Known(fields.map(|field| field.name.clone()).collect())
            }
            Err(rperf_tracepoint::Error::NotATracepoint) => Fields::NoTracepoint,
            Err(_) => Fields::Unknown(event.name.clone()),
        };
        Ok(Self {
            events: recording.events.iter().map(fields).collect(),
        })
    }

    /// Names of tracepoints that are not described.
    pub fn undescribed(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|fields| match fields {
            Fields::Unknown(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// What is said of the event at `place`.
    pub(super) fn text(&self, place: usize) -> String {
        match self.events.get(place) {
            Some(Fields::Known(names)) if !names.is_empty() => {
                format!("trace_fields: {}", names.join(","))
            }
            Some(Fields::NoTracepoint) => "(not a tracepoint)".to_owned(),
            _ => "(no trace field)".to_owned(),
        }
    }
}
