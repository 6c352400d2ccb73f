//! Files of the first versions of perf, files with attrs of newer kernels, and files of Android's simpleperf.

use rperf_perfdata::{Error, EventDesc, FeatureId, FeatureSet, FileFinding, PerfData};
use rperf_testkit::Bytes;
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{Attr, Endian, EventType, RecordKind, SampleType};

use crate::generated::{BOTH, file, record};

/// An event whose samples have only an IP, with the id 7.
fn event(kind: EventType, config: u64) -> EventDesc {
    let attr = Attr {
        kind,
        config,
        sample_type: SampleType::IP,
        ..Attr::default()
    };
    EventDesc::new(attr, vec![7])
}

#[test]
fn version_1_is_read_in_both_byte_orders() {
    for endian in BOTH {
        let mut features = FeatureSet::new(endian);
        features.hostname("machine");
        let sample = record(RecordKind::SAMPLE, &[1; 8], endian);
        let events = [event(EventType::SOFTWARE, 0)];
        let mut bytes = file(&events, &sample, &features, endian);
        bytes[..8].copy_from_slice(b"PERFFILE");
        let data = PerfData::parse(&bytes).unwrap();
        assert_eq!(data.endian(), endian);
        assert_eq!(data.events(), events);
        assert_eq!(data.data(), sample);
        assert_eq!(data.features().hostname().as_deref(), Some("machine"));
    }
}

/// The file has a header, one attr of 64 bytes with its section of ids, the id, one record, and trailing bytes beyond the
/// data size in the header.
#[test]
fn a_header_without_a_bitmap_of_features_is_read() {
    // Sizes of the header and of an attr with its section, then the sections of attrs, records and event types.
    let bytes = Bytes::new().raw("PERFFILE").u64(72).u64(80);
    let bytes = bytes.u64(72).u64(80).u64(160).u64(16).u64(0).u64(0);
    let bytes = bytes.u32(1).u32(0).u64(0).u64(4000).u64(1).u64(0);
    let bytes = bytes.u64(0).u32(0).u32(0).u64(0).u64(152).u64(8).u64(7);
    let bytes = bytes.u32(9).u16(2).u16(16).u64(0x1234).raw("behind").done();
    let data = PerfData::parse(&bytes).unwrap();
    assert_eq!(data.findings(), &[]);
    assert_eq!(data.events()[0].ids, [7]);
    assert_eq!(data.events()[0].attr.sample_period, 4000);
    assert_eq!(data.records().count(), 1);
    assert_eq!(data.features().present().count(), 0);
}

#[test]
fn unknown_header_sizes_are_errors() {
    let bytes = Bytes::new().raw("PERFFILE").u64(73).done();
    let size = Error::HeaderSize { size: 73 };
    assert_eq!(PerfData::parse(&bytes).unwrap_err(), size);
    let truncated = PerfData::parse(b"PERFF").unwrap_err();
    assert_eq!(truncated, Error::HeaderTruncated { have: 5 });
}

/// A big-endian bitmap may consist of words of 32 or of 64 bits. If it has unknown features either way, the file is read as one
/// of the oldest recorders, which wrote no feature but build-ids.
#[test]
fn an_invalid_feature_bitmap_means_build_ids_only() {
    let sample = record(RecordKind::SAMPLE, &[1; 8], Endian::Big);
    let events = [event(EventType::SOFTWARE, 0)];
    let features = FeatureSet::new(Endian::Big);
    let mut bytes = file(&events, &sample, &features, Endian::Big);
    // The first word of the bitmap.
    bytes[72..80].copy_from_slice(&[0x80, 0, 0, 0, 0x80, 0, 0, 0]);
    let data = PerfData::parse(&bytes).unwrap();
    let present: Vec<FeatureId> = data.header().present().collect();
    assert_eq!(present, [FeatureId::BUILD_ID]);
}

/// An attr with 16 unknown bytes, as from a future kernel.
fn larger_attr(config: u64) -> Vec<u8> {
    let mut attr = event(EventType::SOFTWARE, config)
        .attr
        .encode(Endian::Little);
    attr.resize(Attr::SIZE_VER9 + 16, 0xff);
    let size = u32::try_from(attr.len()).unwrap();
    attr[4..8].copy_from_slice(&size.to_le_bytes());
    attr
}

#[test]
fn newer_attrs_are_read_up_to_the_known_size() {
    let (attrs, size) = (
        [larger_attr(3), larger_attr(4)],
        Attr::SIZE_VER9 as u64 + 16,
    );
    let known = Attr::SIZE_VER9 as u64;
    let expected = [FileFinding::AttrLarger { size, known }];
    // An attr with its section of ids, which is empty.
    let entry = size + 16;
    let bytes = Bytes::new().raw("PERFILE2").u64(104).u64(entry);
    let bytes = bytes.u64(104).u64(2 * entry).u64(104 + 2 * entry).u64(16);
    // The section of event types and the bitmap of features are empty.
    let bytes = attrs.iter().fold(bytes.raw([0; 48]), |bytes, attr| {
        bytes.raw(attr).u64(0).u64(0)
    });
    let sample = record(RecordKind::SAMPLE, &[1; 8], Endian::Little);
    let bytes = bytes.raw(&sample).done();
    let file = PerfData::parse(&bytes).unwrap();
    assert_eq!(file.findings(), expected);
    let mut stream = Bytes::new().raw("PERFILE2").u64(16).done();
    for attr in attrs {
        stream.extend(record(RecordKind::HEADER_ATTR, &attr, Endian::Little));
    }
    stream.extend(sample);
    let stream = PerfData::parse(&stream).unwrap();
    assert_eq!(stream.findings(), expected);
    let configs = |data: &PerfData<'_>| -> Vec<u64> {
        data.events()
            .iter()
            .map(|event| event.attr.config)
            .collect()
    };
    assert_eq!((configs(&file), configs(&stream)), (vec![3, 4], vec![3, 4]));
}

const FORMAT: &[u8] = b"name: sched_switch\nID: 47\nformat:\n";

fn tracing_data() -> Vec<u8> {
    let mut data = TracingDataBuilder::new(Endian::Little, 8, 4096);
    data.event("sched", FORMAT);
    data.encode()
}

/// The name of the tracepoint in a simpleperf recording that starts with `records`; `None` if they hold no format of it.
fn tracepoint_name(records: &[u8]) -> Option<String> {
    let endian = Endian::Little;
    let events = [event(EventType::TRACEPOINT, 47)];
    let mut records = records.to_vec();
    records.extend(record(RecordKind::SAMPLE, &[1; 8], endian));
    let bytes = file(&events, &records, &FeatureSet::new(endian), endian);
    let data = PerfData::parse(&bytes).unwrap();
    let read: Result<Vec<_>, Error> = data.records().collect();
    // The records of the format don't disturb those after them.
    let last = read.unwrap().last().unwrap().raw.kind;
    assert_eq!(last, RecordKind::SAMPLE);
    data.features().formats().unwrap().name(47)?;
    Some(data.events()[0].name.clone())
}

#[test]
fn simpleperf_puts_descriptions_of_tracepoints_into_records() {
    let (data, endian) = (tracing_data(), Endian::Little);
    // The body of a record: the size of the data, and the data.
    let sized = [&u32::try_from(data.len()).unwrap().to_le_bytes()[..], &data].concat();
    let named = Some("sched:sched_switch".to_owned());
    for kind in [
        RecordKind::HEADER_TRACING_DATA,
        RecordKind::SIMPLEPERF_TRACING_DATA,
    ] {
        assert_eq!(tracepoint_name(&record(kind, &sized, endian)), named);
    }
    // A record that would be too long is split.
    let unsplit = record(RecordKind::SIMPLEPERF_TRACING_DATA, &sized, endian);
    let split = |size: usize| {
        let parts = unsplit.chunks(size);
        let mut records: Vec<u8> = parts
            .flat_map(|part| record(RecordKind::SIMPLEPERF_SPLIT, part, endian))
            .collect();
        records.extend(record(RecordKind::SIMPLEPERF_SPLIT_END, &[], endian));
        records
    };
    assert_eq!(tracepoint_name(&split(50)), named);
    // The first of the split records alone: a header of 8 bytes and a piece of 50.
    assert_eq!(tracepoint_name(&split(50)[..58]), None);
    assert_eq!(tracepoint_name(&[]), None);
}

#[test]
fn simpleperf_names_events_in_meta_info() {
    let endian = Endian::Little;
    let mut features = FeatureSet::new(endian);
    let lines = "cpu-cycles,0,0\nsched:sched_switch,2,47".to_owned();
    features.meta_info(&[("event_type_info".to_owned(), lines)]);
    let events = [
        event(EventType::TRACEPOINT, 47),
        event(EventType::TRACEPOINT, 4),
    ];
    let sample = record(RecordKind::SAMPLE, &[1; 8], endian);
    let bytes = file(&events, &sample, &features, endian);
    let data = PerfData::parse(&bytes).unwrap();
    let names: Vec<&str> = data
        .events()
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    assert_eq!(names, ["sched:sched_switch", "unknown tracepoint"]);
}
