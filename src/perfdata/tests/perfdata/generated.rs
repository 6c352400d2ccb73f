//! Generated records and files.

use std::io::Cursor;

use rperf_perfdata::{EventDesc, FeatureSet, Writer};
use rperf_wire::{Endian, Misc, RawRecord, RecordKind};

/// Both byte orders.
pub(crate) const BOTH: [Endian; 2] = [Endian::Little, Endian::Big];

/// A record with its header.
pub(crate) fn record(kind: RecordKind, body: &[u8], endian: Endian) -> Vec<u8> {
    let misc = Misc(0);
    let mut bytes = Vec::new();
    RawRecord { kind, misc, body }.encode(endian, &mut bytes);
    bytes
}

/// A FINISHED_ROUND record, for files of tests that need no other records: the reader takes a file without records for that of a
/// killed recorder.
pub(crate) fn finished_round(endian: Endian) -> Vec<u8> {
    record(RecordKind::FINISHED_ROUND, &[], endian)
}

/// A file with these events, records and features.
pub(crate) fn file(
    events: &[EventDesc],
    records: &[u8],
    features: &FeatureSet,
    endian: Endian,
) -> Vec<u8> {
    let mut writer = Writer::with_endian(Cursor::new(Vec::new()), events, endian).unwrap();
    writer.write_data(records).unwrap();
    let (_, file) = writer.finish(features).unwrap();
    file.into_inner()
}
