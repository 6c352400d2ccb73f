//! Tracepoints of a recording: their text, and their fields as sort keys.

use std::path::Path;

use rperf_hist::{FieldValue, FieldValues, Key, PayloadText, ReportField, field_names};
use rperf_lines::TracepointPrinter;
use rperf_names::by_distance;
use rperf_perfdata::Metadata;
use rperf_replay::EventIndex;
use rperf_resolve::Resolver;
use rperf_tracepoint::{Abi, Field as Member, FieldReader, Tracepoint};
use rperf_wire::EventType;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::payloads::tracepoint_printer;

/// Sort keys of newer releases of perf, for data types. They are not supported here.
const OF_TYPES: &[&str] = &["type", "typeoff", "typecln"];

/// The tracepoints of a recording. Their formats are read on first use.
pub(crate) struct RecordedTracepoints<'a> {
    context: &'a Context,
    path: &'a Path,
    recording: Metadata<'a>,
    /// `--raw-trace`: values without `print fmt`.
    raw: bool,
    /// The tracepoints with their formats; `None` until these are read.
    printer: Option<TracepointPrinter>,
    /// The fields used as keys, by the number of their key.
    keys: Vec<FieldKey>,
}

/// A field used as key.
struct FieldKey {
    event: EventIndex,
    /// The field in the event's format.
    member: Member,
    reader: FieldReader,
    /// Whether its values are shown without `print fmt`.
    raw: bool,
}

/// A parsed key: `EVENT.FIELD/raw`, where all but FIELD may be missing.
struct ParsedFieldKey<'w> {
    event: Option<&'w str>,
    field: &'w str,
    raw: bool,
}

/// The key for all fields of all tracepoints.
pub(crate) const ALL_FIELDS_KEY: &str = "trace_fields";

impl<'a> RecordedTracepoints<'a> {
    /// Creates the tracepoints of the recording at `path`, without reading their formats.
    pub(crate) fn new(
        context: &'a Context,
        path: &'a Path,
        recording: Metadata<'a>,
        raw: bool,
    ) -> Self {
        Self {
            context,
            path,
            recording,
            raw,
            printer: None,
            keys: Vec::new(),
        }
    }

    /// Reads the formats, unless they were read before.
    pub(crate) fn read(&mut self) -> Result<(), CliError> {
        if self.printer.is_none() {
            self.printer = Some(tracepoint_printer(self.context, self.path, self.recording)?);
        }
        Ok(())
    }

    /// Returns the keys that `word` selects, in the order of the recorded events and their fields. As in perf, an event before
    /// `trace_fields` is ignored. `option` is the option's name without dashes, for messages.
    pub(crate) fn find(&mut self, option: &str, word: &str) -> Result<Vec<ReportField>, CliError> {
        self.read()?;
        let unknown = || self.unknown(option, word);
        let parsed = ParsedFieldKey::new(word).ok_or_else(unknown)?;
        let only = match parsed.event {
            Some(name) if parsed.field != ALL_FIELDS_KEY => {
                Some(self.event(name).ok_or_else(unknown)?)
            }
            _ => None,
        };
        let mut selected = Vec::new();
        for (event, tracepoint) in self.tracepoints_with_format() {
            if only.is_some_and(|only| only != event) {
                continue;
            }
            let format = &tracepoint.format;
            let members = match parsed.field {
                ALL_FIELDS_KEY => &format.fields[..],
                "*" if only.is_some() => &format.fields[..],
                name => format.field(name).map_or(&[][..], std::slice::from_ref),
            };
            let raw = parsed.raw || self.raw;
            selected.extend(members.iter().map(|member| FieldKey {
                event,
                member: member.clone(),
                reader: member.reader(tracepoint.abi.endian),
                raw,
            }));
        }
        if selected.is_empty() && parsed.field != ALL_FIELDS_KEY {
            return Err(self.unknown(option, word));
        }
        Ok(selected.into_iter().map(|key| self.key(key)).collect())
    }

    /// Returns the tracepoints whose formats were read.
    fn tracepoints_with_format(&self) -> impl Iterator<Item = (EventIndex, &Tracepoint)> {
        let printers = self.printer.iter();
        let events = (0..).map(EventIndex).take(self.recording.events.len());
        printers.flat_map(move |printer| {
            let events = events.clone();
            events.filter_map(|event| Some((event, printer.tracepoint(event)?)))
        })
    }

    /// Returns the event that `name` selects. `name` is the full `SYSTEM:EVENT`, a part of the name of exactly one event, or
    /// `%N`: the Nth event, counted from 1, which may not exist.
    fn event(&self, name: &str) -> Option<EventIndex> {
        let events = &self.recording.events;
        if let Some(number) = name.strip_prefix('%') {
            let number: u32 = number.parse().ok()?;
            return Some(EventIndex(number.checked_sub(1)?));
        }
        let is_match = |event_name: &str| match name.contains(':') {
            true => event_name == name,
            false => event_name.contains(name),
        };
        let mut matching = (0..)
            .zip(events.iter())
            .filter(|(_, event)| is_match(&event.name));
        let (first, _) = matching.next()?;
        let is_unambiguous = name.contains(':') || matching.next().is_none();
        is_unambiguous.then_some(EventIndex(first))
    }

    /// Returns the key of a field. Calls for the same field return equal keys.
    fn key(&mut self, key: FieldKey) -> ReportField {
        let same =
            |old: &FieldKey| (old.event, old.raw, &old.member) == (key.event, key.raw, &key.member);
        let number = self.keys.iter().position(same);
        let number = number.unwrap_or(self.keys.len());
        let (event, name) = (key.event.0 as usize, key.member.name.clone());
        let recorded = self.recording.events.get(event);
        let event_name = recorded.map_or("", |event| &event.name);
        let full_name = format!("{event_name}.{name}{}", if key.raw { "/raw" } else { "" });
        if number == self.keys.len() {
            self.keys.push(key);
        }
        ReportField::Key(Key::of_field(event, number, &name, &full_name))
    }

    /// Returns the error for an unknown key, with perf's message. For keys of data types, the hint names other keys. Otherwise it
    /// lists names, the most similar first: the recording's tracepoints if the key's event is unknown or ambiguous, the fields of
    /// this event if it is known, and all sort keys and fields if the key has no event.
    fn unknown(&self, option: &str, word: &str) -> CliError {
        let error = CliError::usage(format!("Unknown --{option} key: `{word}'"));
        if OF_TYPES.contains(&word) {
            return error.hint("data types are not supported; use symbol_daddr for variables, srcline for the accessing line");
        }
        let key = ParsedFieldKey::new(word);
        let field = key.as_ref().map_or(word, |key| key.field);
        let event = key.and_then(|key| key.event);
        if let Some(event) = event.filter(|event| self.event(event).is_none()) {
            let is_tracepoint =
                |event: &&rperf_perfdata::EventDesc| event.attr.kind == EventType::TRACEPOINT;
            let events = self.recording.events.iter().filter(is_tracepoint);
            let names = by_distance(event, events.map(|event| event.name.as_str()));
            return error.hint(match names.is_empty() {
                true => "the recording has no tracepoints".to_owned(),
                false => format!(
                    "'{event}' does not select exactly one of the recording's tracepoints: {}",
                    names.join(", ")
                ),
            });
        }
        let only = event.and_then(|event| self.event(event));
        let all = self.tracepoints_with_format();
        let selected = all.filter(|(event, _)| only.is_none_or(|only| only == *event));
        let members = selected.flat_map(|(_, tracepoint)| &tracepoint.format.fields);
        let mut candidates: Vec<&str> = members.map(|member| member.name.as_str()).collect();
        candidates.sort_unstable();
        candidates.dedup();
        if event.is_none() {
            // The sort keys and columns that are not tracepoint fields.
            candidates.extend(
                field_names()
                    .filter(|name| candidates.binary_search(name).is_err())
                    .collect::<Vec<_>>(),
            );
        }
        let list = if event.is_some() {
            "its fields"
        } else {
            "the keys"
        };
        error.hint(format!(
            "{list}, most similar first: {}",
            by_distance(field, candidates).join(", ")
        ))
    }

    /// Returns the text and the key fields of samples, for a histogram.
    pub(crate) fn text<'t, 'w>(&'t self, resolver: &'t Resolver<'w>) -> TracepointText<'t, 'w> {
        TracepointText {
            tracepoints: self,
            resolver,
        }
    }
}

impl<'w> ParsedFieldKey<'w> {
    /// Parses a word; `None` if the text after a slash is not `raw`.
    fn new(word: &'w str) -> Option<Self> {
        let (name, raw) = match word.split_once('/') {
            Some((name, "raw")) => (name, true),
            Some(_) => return None,
            None => (word, false),
        };
        let (event, field) = match name.split_once('.') {
            Some((event, field)) => (Some(event), field),
            None => (None, name),
        };
        Some(Self { event, field, raw })
    }
}

/// Text and key fields of samples; kernel addresses are shown as symbols.
pub(crate) struct TracepointText<'t, 'w> {
    tracepoints: &'t RecordedTracepoints<'t>,
    resolver: &'t Resolver<'w>,
}

impl PayloadText for TracepointText<'_, '_> {
    fn has(&self, event: EventIndex) -> bool {
        let printer = self.tracepoints.printer.as_ref();
        printer.is_some_and(|printer| printer.has(event))
    }

    fn write(&self, event: EventIndex, payload: &[u8], out: &mut Vec<u8>) {
        let Some(printer) = &self.tracepoints.printer else {
            return;
        };
        match printer.tracepoint(event) {
            Some(tracepoint) if self.tracepoints.raw => {
                tracepoint.format.write_fields(payload, tracepoint.abi, out);
            }
            _ => printer.write(event, payload, self.resolver, out),
        }
    }

    fn fields(&self, event: EventIndex, payload: &[u8]) -> FieldValues {
        let keys = &self.tracepoints.keys;
        let printer = self.tracepoints.printer.as_ref();
        let Some(tracepoint) = printer.and_then(|printer| printer.tracepoint(event)) else {
            return Vec::new();
        };
        let mut text = Vec::new();
        if keys.iter().any(|key| key.event == event && !key.raw) {
            self.write(event, payload, &mut text);
        }
        let value_of = |key: &FieldKey| {
            // With empty text, `value` formats the value without `print fmt`.
            let formatted = if key.raw { &[][..] } else { &text };
            (key.event == event).then(|| value(tracepoint.abi, key, payload, formatted))
        };
        keys.iter().map(value_of).collect()
    }
}

/// Returns the bytes of a field in `payload`, and its text. `text` is the payload formatted by the event's `print fmt`: if it has
/// the field, the text is copied from there, otherwise the value is formatted without `print fmt`.
fn value(abi: Abi, key: &FieldKey, payload: &[u8], text: &[u8]) -> FieldValue {
    let FieldKey { member, reader, .. } = key;
    let bytes = match member.is_string {
        true => reader.text(payload),
        false => reader.bytes(payload),
    };
    let bytes = bytes.unwrap_or_default();
    let mut plain = Vec::new();
    let value = value_in_text(text, member.name.as_bytes()).unwrap_or_else(|| {
        member.write(payload, abi, &mut plain);
        &plain
    });
    FieldValue {
        bytes: bytes.to_vec(),
        text: String::from_utf8_lossy(value).into_owned(),
    }
}

/// Returns the value of the first word `NAME=VALUE` or `NAME:VALUE` in an event's text.
fn value_in_text<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let mut words = text.split(|byte| *byte == b' ');
    words.find_map(|word| match word.strip_prefix(name)? {
        [b'=' | b':', value @ ..] if !value.is_empty() => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_event_field_and_raw_values() {
        let read = |word| {
            let key = ParsedFieldKey::new(word)?;
            Some((key.event, key.field, key.raw))
        };
        assert_eq!(read("pid"), Some((None, "pid", false)));
        assert_eq!(read("a:b.*/raw"), Some((Some("a:b"), "*", true)));
        assert_eq!(read("pid/hex"), None);
    }

    #[test]
    fn a_value_is_found_by_the_whole_field_name() {
        let text = b"prev_comm=sh prev_state=S ==> state: 0x1 pid:7";
        assert_eq!(value_in_text(text, b"prev_state"), Some(&b"S"[..]));
        assert_eq!(value_in_text(text, b"pid"), Some(&b"7"[..]));
        assert_eq!(value_in_text(text, b"prev"), None);
        // The blank after `state:` ends the word, so its value is empty.
        assert_eq!(value_in_text(text, b"state"), None);
    }
}
