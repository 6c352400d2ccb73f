//! The fields of tracepoints, by name.

use rperf_perfdata::{Described, Error};
use rperf_tracepoint::Format;
use rperf_wire::EventType;

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
    /// As [`rperf_perfdata::Features::tracing_data`], where there are tracepoints to describe.
    pub fn new(recording: Described<'_>) -> Result<Self, Error> {
        let events = recording.events;
        let is_tracepoint = |kind| kind == EventType::TRACEPOINT;
        let tracing_data = match events.iter().any(|event| is_tracepoint(event.attr.kind)) {
            true => recording.features.tracing_data()?,
            false => None,
        };
        let fields = |event: &rperf_perfdata::EventDesc| {
            if !is_tracepoint(event.attr.kind) {
                return Fields::NoTracepoint;
            }
            let described = tracing_data.as_ref().and_then(|data| {
                let text = data.by_id(event.attr.config)?.to_str();
                Format::parse_for(&text, data.long_size.into()).ok()
            });
            match described {
                Some(format) => {
                    Fields::Known(format.fields.into_iter().map(|field| field.name).collect())
                }
                None => Fields::Unknown(event.name.clone()),
            }
        };
        Ok(Self {
            events: events.iter().map(fields).collect(),
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
