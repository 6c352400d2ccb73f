//! Recordings for tests.

use std::io::Cursor;

use rperf_perfdata::{EventDesc, FeatureSet, Writer};
use rperf_wire::{Endian, Misc, RawRecord, RecordKind};

/// A file with these events and features. It contains a record; otherwise it would look like the
/// file of a killed recorder.
pub(crate) fn file(endian: Endian, events: &[EventDesc], features: &FeatureSet) -> Vec<u8> {
    let output = Cursor::new(Vec::new());
    let mut writer = Writer::with_endian(output, events, endian).unwrap();
    let round = RawRecord {
        kind: RecordKind::FINISHED_ROUND,
        misc: Misc(0),
        body: &[],
    };
    let mut bytes = Vec::new();
    round.encode(endian, &mut bytes);
    writer.write_data(&bytes).unwrap();
    let (_, output) = writer.finish(features).unwrap();
    output.into_inner()
}
