//! The events that begin and end a latency.

use std::path::Path;

use rperf_analysis::{EventPair, KeyedEvent};
use rperf_perfdata::Metadata;
use rperf_replay::{EventIndex, Replay};
use rperf_tracepoint::{Error, FieldReader};

use crate::cli::error::CliError;
use crate::cli::event_lookup::find_event;

/// Returns the start event and the end event with these names. They are matched by the fields `key`, or by thread if `key` is empty.
///
/// # Errors
///
/// Status 255: the recording `path` lacks one of the events, an event lacks a field of `key`, or `key` is given for an event that is not a
/// tracepoint. Also fails if the format of a tracepoint is damaged.
pub(crate) fn event_pair(
    replay: &Replay<'_>,
    path: &Path,
    [from, to]: [&str; 2],
    key: &[String],
) -> Result<EventPair, CliError> {
    let recording = replay.data().metadata();
    let end = |name: &str| keyed(find_event(replay, path, name)?, key, recording);
    Ok(EventPair {
        from: end(from)?,
        to: end(to)?,
    })
}

/// Returns one of the two events, with its key fields.
fn keyed(event: usize, key: &[String], recording: Metadata<'_>) -> Result<KeyedEvent, CliError> {
    Ok(KeyedEvent {
        event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
        key: match key {
            [] => Vec::new(),
            key => fields(event, key, recording)?,
        },
    })
}

/// The fields of a tracepoint with these names.
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
        tracepoint.reader(field).ok_or_else(|| {
            CliError::message(255, format!("{name} has no field '{field}'"))
                .hint("'evlist --trace-fields' lists the fields")
        })
    });
    fields.collect()
}
