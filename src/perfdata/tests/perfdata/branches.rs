//! Branch traces as samples.

use std::io::Cursor;

use crate::generated::BOTH;
use rperf_perfdata::{EventDesc, FeatureSet, PerfData, PipeWriter, Writer};
use rperf_wire::{
    Attr, Endian, EventType, Misc, RecordHeader, RecordKind, SampleLayout, SampleRecord, SampleType,
};

/// The type of the traced event's PMU.
const PMU: u32 = 12;
/// A branch source in the kernel.
const FROM_KERNEL: u64 = 0xffff_ffff_8100_0000;

fn record(kind: RecordKind, words: &[u64], endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::new();
    RecordHeader::encode_record(kind, Misc(0), &mut bytes, endian, |to| {
        words.iter().for_each(|word| to.u64(*word));
    });
    bytes
}

/// Packs two 32-bit words into a 64-bit word, `first` at the lower offset.
fn pair(first: u32, second: u32, endian: Endian) -> u64 {
    match endian {
        Endian::Little => u64::from(first) | u64::from(second) << 32,
        Endian::Big => u64::from(first) << 32 | u64::from(second),
    }
}

/// The records of a trace of thread 8 of process 7, in two parts.
fn records(parts: [&[[u64; 3]]; 2], is_snapshot: bool, endian: Endian) -> Vec<u8> {
    // `PERF_AUXTRACE_INTEL_BTS`, and padding.
    let intel_bts = pair(2, 0, endian);
    // Type of the trace and of the PMU, four words for the conversion of times, and whether the parts are snapshots.
    let info = [intel_bts, PMU.into(), 0, 0, 0, 0, is_snapshot.into()];
    let mut bytes = record(RecordKind::AUXTRACE_INFO, &info, endian);
    // The process and thread, and two words in place of the sample id, which is not read.
    bytes.extend(record(
        RecordKind::ITRACE_START,
        &[pair(7, 8, endian), 0, 0],
        endian,
    ));
    for part in parts {
        let size = size_of_val(part) as u64;
        // Size, offset and reference of the part; index of its ring, and its thread; CPU (-1: any) and padding.
        let fields = [size, 0, 0, pair(0, 8, endian), pair(u32::MAX, 0, endian)];
        bytes.extend(record(RecordKind::AUXTRACE, &fields, endian));
        for word in part.as_flattened() {
            let word = match endian {
                Endian::Little => word.to_le_bytes(),
                Endian::Big => word.to_be_bytes(),
            };
            bytes.extend(word);
        }
    }
    bytes.extend(record(RecordKind::FINISHED_ROUND, &[], endian));
    bytes
}

fn events(sample_type: SampleType) -> Vec<EventDesc> {
    let attr = Attr {
        kind: EventType(PMU),
        sample_type,
        ..Attr::default()
    };
    vec![EventDesc::new(attr, vec![5])]
}

const FIELDS: SampleType =
    SampleType(SampleType::IDENTIFIER.0 | SampleType::IP.0 | SampleType::TID.0);

fn file(records: &[u8], sample_type: SampleType, endian: Endian) -> Vec<u8> {
    let output = Cursor::new(Vec::new());
    let mut writer = Writer::with_endian(output, &events(sample_type), endian).unwrap();
    writer.write_data(records).unwrap();
    let (_, output) = writer.finish(&FeatureSet::new(endian)).unwrap();
    output.into_inner()
}

fn stream(records: &[u8], endian: Endian) -> Vec<u8> {
    let features = FeatureSet::new(endian);
    let mut bytes = Vec::new();
    let mut writer =
        PipeWriter::with_endian(&mut bytes, &events(FIELDS), &features, endian).unwrap();
    writer.write_data(records).unwrap();
    writer.flush().unwrap();
    bytes
}

/// CPU mode, source, process, thread and target of each branch.
fn branches(bytes: &[u8]) -> Vec<(u16, u64, u32, u32, u64)> {
    let data = PerfData::parse(bytes).unwrap();
    // The traced event, and the added one. The added event's id is that of the traced one plus a billion.
    let [_, event] = data.events() else {
        panic!("{:?}", data.events())
    };
    assert_eq!(
        (event.name.as_str(), &event.ids),
        ("branches:HG", &vec![1_000_000_005])
    );
    let layout = SampleLayout::new(&event.attr);
    let mut samples = Vec::new();
    for record in data.records() {
        let raw = record.unwrap().raw;
        assert!(raw.kind != RecordKind::AUXTRACE && raw.kind != RecordKind::AUXTRACE_INFO);
        if raw.kind == RecordKind::SAMPLE {
            let sample: SampleRecord<'_> = layout.decode(raw.body, data.endian()).unwrap();
            let (pid, tid) = sample.pid_tid.unwrap();
            let (from, to) = (sample.ip.unwrap(), sample.addr.unwrap());
            samples.push((raw.misc.0, from, pid, tid, to));
        }
    }
    samples
}

// Branches of the trace: source, target and flags.
const A: [u64; 3] = [0x1000, 0x2000, 0x10];
const B: [u64; 3] = [FROM_KERNEL, 0x3000, 0];
const C: [u64; 3] = [0x3000, 0x4000, 0];

#[test]
fn each_branch_is_a_sample_of_its_thread() {
    let expected = [
        (2, 0x1000, 7, 8, 0x2000),
        (1, FROM_KERNEL, 7, 8, 0x3000),
        (2, 0x3000, 7, 8, 0x4000),
    ];
    for endian in BOTH {
        // The parts of snapshots overlap: `B` is in both, but is one sample.
        for (parts, is_snapshot) in [([&[A, B][..], &[C]], false), ([&[A, B], &[B, C]], true)] {
            let records = records(parts, is_snapshot, endian);
            for stored in [file(&records, FIELDS, endian), stream(&records, endian)] {
                let data = PerfData::parse(&stored).unwrap();
                let decoded = data.with_branches().unwrap().unwrap();
                assert_eq!(branches(&decoded), expected, "{endian:?}");
            }
        }
    }
}

#[test]
fn files_without_traces_or_ids_are_unchanged() {
    let endian = Endian::Little;
    let is_snapshot = false;
    let traced = records([&[A], &[]], is_snapshot, endian);
    let untraced = record(RecordKind::FINISHED_ROUND, &[], endian);
    for stored in [
        // Without IDENTIFIER.
        file(&traced, SampleType::IP | SampleType::TID, endian),
        file(&untraced, FIELDS, endian),
    ] {
        let data = PerfData::parse(&stored).unwrap();
        assert!(data.with_branches().unwrap().is_none());
    }
}

#[test]
fn truncated_traces_are_converted_to_valid_files() {
    let endian = Endian::Little;
    let is_snapshot = true;
    let records = records([&[A, B], &[C]], is_snapshot, endian);
    let stored = file(&records, FIELDS, endian);
    for length in 0..stored.len() {
        if let Ok(data) = PerfData::parse(&stored[..length])
            && let Some(decoded) = data.with_branches().unwrap()
        {
            assert!(PerfData::parse(&decoded).is_ok(), "truncated at {length}");
        }
    }
}
