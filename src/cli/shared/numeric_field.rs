//! Numeric fields of tracepoints by name.

use rperf_names::by_distance;
use rperf_perfdata::Metadata;
use rperf_tracepoint::{Error, FieldReader, Tracepoint};

/// The reason why an event has no numeric field of the requested name.
pub(crate) enum NoNumericField {
    NotATracepoint,
    /// The format of the tracepoint is missing or damaged, for this reason.
    NoFormat(String),
    /// The tracepoint has no such field. The comma-separated names of its own numeric fields, most similar first.
    Others(String),
}

impl NoNumericField {
    /// Returns the text of the hint; `without_fields` is what to use instead for an event that is not a tracepoint.
    pub(crate) fn hint(self, without_fields: &str) -> String {
        match self {
            Self::NotATracepoint => format!("the event is not a tracepoint: {without_fields}"),
            Self::NoFormat(cause) => format!("its format cannot be used: {cause}"),
            Self::Others(names) => {
                format!("its fields with numbers, most similar first: {names}")
            }
        }
    }
}

/// Returns the reader of the numeric field `name` of the event with this index.
pub(crate) fn numeric_field(
    recording: Metadata<'_>,
    event: usize,
    name: &str,
) -> Result<FieldReader, NoNumericField> {
    let event_desc = recording.events.get(event);
    let formats = recording.formats().unwrap_or_default();
    let tracepoint = match event_desc.map(|event| formats.of_event(&event.attr)) {
        Some(Ok(tracepoint)) => tracepoint,
        Some(Err(Error::NotATracepoint)) | None => return Err(NoNumericField::NotATracepoint),
        Some(Err(error)) => return Err(NoNumericField::NoFormat(error.to_string())),
    };
    numeric_field_of(tracepoint, name).map_err(NoNumericField::Others)
}

/// Returns the reader of the tracepoint's numeric field `name`, one of its own fields or a common field.
///
/// # Errors
///
/// The comma-separated names of the tracepoint's own numeric fields, most similar first, if it has no numeric field `name`.
pub(crate) fn numeric_field_of(tracepoint: &Tracepoint, name: &str) -> Result<FieldReader, String> {
    if let Some(reader) = tracepoint.reader(name).filter(FieldReader::is_number) {
        return Ok(reader);
    }
    let numbers = tracepoint.fields().filter(|(_, reader)| reader.is_number());
    let names = by_distance(name, numbers.map(|(field, _)| field.name.as_str()));
    Err(names.join(", "))
}
