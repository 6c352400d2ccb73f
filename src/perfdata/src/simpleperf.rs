//! Metadata that Android's simpleperf stores differently from perf.

use std::borrow::Cow;

use rperf_wire::{Endian, EventType, RawRecord, RecordKind};

use crate::{EventDesc, FeatureId, Features, RecordAt, Records, Section};

/// If an event is a tracepoint and no section has the tracepoint formats, adds those in the first record, if any, to `features`.
/// Formats too long for one record are in a record split into pieces: the bodies of the first records, up to a
/// `SIMPLEPERF_SPLIT_END`.
pub(crate) fn add_tracing_data_of_records<'a>(
    records: Records<'a>,
    events: &[EventDesc],
    features: &mut Features<'a>,
) {
    let has_tracepoints = events
        .iter()
        .any(|event| event.attr.kind == EventType::TRACEPOINT);
    if !has_tracepoints || features.has(FeatureId::TRACING_DATA) {
        return;
    }
    let (offset, endian) = (records.position(), records.endian());
    let mut pieces = Vec::new();
    for record in records.flatten() {
        let formats = match record.raw.kind {
            RecordKind::SIMPLEPERF_SPLIT => {
                pieces.extend_from_slice(record.raw.body);
                continue;
            }
            RecordKind::SIMPLEPERF_SPLIT_END => {
                joined_formats(&pieces, &record, endian).map(Cow::Owned)
            }
            _ => record.tracing_data(endian).map(Cow::Borrowed),
        };
        if let Some(formats) = formats {
            let size = formats.len() as u64;
            // The file has no section with the formats; the offset of the first record replaces that of the section.
            features.put(FeatureId::TRACING_DATA, Section { offset, size }, formats);
        }
        return;
    }
}

/// Returns the formats in the body of the record whose bytes, with its header, are `pieces`. This record gets the position and
/// the payload (data after a record; here empty) of `end`, the record after the last piece.
fn joined_formats(pieces: &[u8], end: &RecordAt<'_>, endian: Endian) -> Option<Vec<u8>> {
    let (raw, _) = RawRecord::split(pieces, endian)?;
    let joined = RecordAt { raw, ..*end };
    joined.tracing_data(endian).map(<[u8]>::to_vec)
}
