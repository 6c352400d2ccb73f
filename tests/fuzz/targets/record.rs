//! Records of every kind: any bytes decode or fail, and re-encoding decodes to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_wire::{
    Encoder, Endian, Misc, RawRecord, Record, RecordKind, SampleIdLayout, SampleType, UserRecord,
};

const FIRST_OF_SIMPLEPERF: u32 = 240;

fuzz_target!(|input: (u8, u16, bool, u64, &[u8])| {
    let (kind, misc, big, sample_type, body) = input;
    let endian = if big { Endian::Big } else { Endian::Little };
    let (own, _id) = SampleIdLayout::new(SampleType(sample_type)).split(body, endian);
    // The last numbers are mapped to simpleperf's.
    let kind = match u32::from(kind) {
        own @ FIRST_OF_SIMPLEPERF.. => own - FIRST_OF_SIMPLEPERF + RecordKind::SIMPLEPERF_START,
        kind => kind,
    };
    let raw = RawRecord {
        kind: RecordKind(kind),
        misc: Misc(misc),
        body: own,
    };
    if let Ok(record) = Record::decode(&raw, endian) {
        let mut again = Vec::new();
        record.encode_body(&mut Encoder::new(&mut again, endian));
        let raw = RawRecord {
            body: &again,
            ..raw
        };
        if !matches!(record, Record::Other(_)) {
            assert_eq!(Record::decode(&raw, endian), Ok(record));
        }
    }
    if let Ok(record) = UserRecord::decode(&raw, endian) {
        let mut again = Vec::new();
        record.encode_body(&mut Encoder::new(&mut again, endian));
        let raw = RawRecord {
            body: &again,
            ..raw
        };
        if !matches!(record, UserRecord::Other(_)) {
            assert_eq!(UserRecord::decode(&raw, endian), Ok(record));
        }
    }
});
