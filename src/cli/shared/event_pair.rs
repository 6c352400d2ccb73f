//! The events that begin and end a latency.

use std::path::Path;

use rperf_analysis::{EventPair, KeyedEvent};
use rperf_perfdata::Metadata;
use rperf_replay::{EventIndex, Replay};
use rperf_tracepoint::{Error, FieldReader};

use crate::cli::error::CliError;
use crate::cli::event_lookup::find_event;
use crate::cli::shared::numeric_field::numeric_field_of;

/// Returns the start event `from` and the end event `to`. Their samples are paired by the fields `key`, or by thread if `key` is
/// empty.
///
/// # Errors
///
/// Status 255: the recording `path` lacks one of the events, an event lacks a numeric field of `key`, or `key` is given for an
/// event that is not a tracepoint or whose format is not in the recording. Also fails if a format is damaged.
pub(crate) fn event_pair(
    replay: &Replay<'_>,
    path: &Path,
    [from, to]: [&str; 2],
    key: &[String],
) -> Result<EventPair, CliError> {
    let recording = replay.data().metadata();
    let find = |name: &str| keyed(find_event(replay, path, name)?, key, recording);
    Ok(EventPair {
        from: find(from)?,
        to: find(to)?,
    })
}

/// Returns one of the two events, with its key fields.
fn keyed(event: usize, key: &[String], recording: Metadata<'_>) -> Result<KeyedEvent, CliError> {
    Ok(KeyedEvent {
        event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
        key: match key {
            // Without key fields, the event need not be a tracepoint.
            [] => Vec::new(),
            key => fields(event, key, recording)?,
        },
    })
}

/// Returns the numeric fields of a tracepoint with these names.
fn fields(
    event: usize,
    names: &[String],
    recording: Metadata<'_>,
) -> Result<Vec<FieldReader>, CliError> {
    let event = recording.events.get(event);
    let name = event.map_or("", |event| &event.name);
    let formats = recording.formats()?;
    let format = match event {
        Some(event) => formats.of_event(&event.attr),
        None => Err(&Error::NotATracepoint),
    };
    let tracepoint = match format {
        Ok(tracepoint) => tracepoint,
        Err(Error::NotATracepoint | Error::Undescribed) => {
            let message = format!("{name} is not a tracepoint of the recording");
            return Err(CliError::message(255, message)
                .hint("--key needs tracepoints; the default key is the thread"));
        }
        Err(error) => return Err(error.clone().into()),
    };
    let fields = names.iter().map(|field| {
        numeric_field_of(tracepoint, field).map_err(|others| {
            let message = format!("{name} has no field '{field}' with a number");
            CliError::message(255, message).hint(format!(
                "its fields with numbers, most similar first: {others}"
            ))
        })
    });
    fields.collect()
}
