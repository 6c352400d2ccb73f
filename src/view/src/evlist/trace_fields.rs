//! The names of the fields of tracepoints.

use rperf_perfdata::{Error, EventDesc, Metadata};

/// The names of the fields of every tracepoint of a recording, without the fields that all tracepoints have (`common_*`).
#[derive(Debug)]
pub struct TraceFields {
    events: Vec<ShownFields>,
}

#[derive(Debug)]
enum ShownFields {
    NotATracepoint,
    /// The names of the fields.
    Known(Vec<String>),
    /// The format of the tracepoint with this name is missing or cannot be parsed.
    Unknown(String),
}

impl TraceFields {
    /// Reads the formats of the tracepoints in a recording.
    ///
    /// # Errors
    /// Those of [`Metadata::formats`].
    pub fn new(recording: Metadata<'_>) -> Result<Self, Error> {
        let formats = recording.formats()?;
        let fields = |event: &EventDesc| match formats.of_event(&event.attr) {
            Ok(tracepoint) => {
                let fields = tracepoint.format.fields.iter();
                ShownFields::Known(fields.map(|field| field.name.clone()).collect())
            }
            Err(rperf_tracepoint::Error::NotATracepoint) => ShownFields::NotATracepoint,
            Err(_) => ShownFields::Unknown(event.name.clone()),
        };
        Ok(Self {
            events: recording.events.iter().map(fields).collect(),
        })
    }

    /// Names of tracepoints whose format is missing or cannot be parsed.
    pub fn undescribed(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(|fields| match fields {
            ShownFields::Unknown(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The text for the event at `index`.
    pub(super) fn text(&self, index: usize) -> String {
        match self.events.get(index) {
            Some(ShownFields::Known(names)) if !names.is_empty() => {
                format!("trace_fields: {}", names.join(","))
            }
            Some(ShownFields::NotATracepoint) => "(not a tracepoint)".to_owned(),
            _ => "(no trace field)".to_owned(),
        }
    }
}
