//! Metadata that Android's simpleperf stores differently from perf.

use std::borrow::Cow;

use rperf_wire::{Endian, EventType, RawRecord, RecordKind};

use crate::{EventDesc, FeatureId, Features, RecordAt, Records, Section};

/// Adds the tracepoint formats in the first record to `features`, if no section has them. Formats too
/// long for one record are split over several.
pub(crate) fn tracing_data_of_records<'a>(
    records: Records<'a>,
    events: &[EventDesc],
    features: &mut Features<'a>,
) {
    let tracepoints = events
        .iter()
        .any(|event| event.attr.kind == EventType::TRACEPOINT);
    if !tracepoints || features.has(FeatureId::TRACING_DATA) {
        return;
    }
    let (offset, endian) = (records.position(), records.endian());
    let mut parts = Vec::new();
    for record in records.flatten() {
        let formats = match record.raw.kind {
            RecordKind::SIMPLEPERF_SPLIT => {
                parts.extend_from_slice(record.raw.body);
                continue;
            }
            RecordKind::SIMPLEPERF_SPLIT_END => joined(&parts, &record, endian).map(Cow::Owned),
            _ => record.tracing_data(endian).map(Cow::Borrowed),
        };
        if let Some(data) = formats {
            let size = data.len() as u64;
            features.put(FeatureId::TRACING_DATA, Section { offset, size }, data);
        }
        return;
    }
}

fn joined(parts: &[u8], end: &RecordAt<'_>, endian: Endian) -> Option<Vec<u8>> {
    let (raw, _) = RawRecord::split(parts, endian)?;
    let joined = RecordAt { raw, ..*end };
    joined.tracing_data(endian).map(<[u8]>::to_vec)
}
