//! Records of every kind except samples: any bytes are decoded or refused, and a re-encoded record is decoded to the same value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rperf_wire::{
    Encoder, Endian, Misc, RawRecord, Record, RecordKind, SampleIdLayout, SampleType, UserRecord,
};

/// Kinds of the input from this number on select simpleperf's kinds, which are larger than a byte.
const FIRST_OF_SIMPLEPERF: u32 = 240;

fuzz_target!(|input: (u8, u16, bool, u64, &[u8])| {
    let (kind, misc, big, sample_type, body) = input;
    let endian = if big { Endian::Big } else { Endian::Little };
    // The fields of the record, without the trailer of `sample_id_all`.
    let (fields, _id) = SampleIdLayout::new(SampleType(sample_type)).split(body, endian);
    let kind = match u32::from(kind) {
        number @ FIRST_OF_SIMPLEPERF.. => {
            number - FIRST_OF_SIMPLEPERF + RecordKind::SIMPLEPERF_START
        }
        number => number,
    };
    let raw = RawRecord {
        kind: RecordKind(kind),
        misc: Misc(misc),
        body: fields,
    };
    if let Ok(record) = Record::decode(&raw, endian) {
        let mut again = Vec::new();
        record.encode_body(&mut Encoder::new(&mut again, endian));
        let raw = RawRecord {
            body: &again,
            ..raw
        };
        // Of the kinds that are `Other` (samples among them) no field is decoded: there is nothing to compare.
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
