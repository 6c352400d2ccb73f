//! Pipe mode: streams are read as written, at once or in pieces, in both byte orders.

use std::io::{self, Read};
use std::sync::Arc;

use rperf_perfdata::feature::BuildIdEntry;
use rperf_perfdata::{
    Error, EventDesc, EventProperty, FeatureId, FeatureSet, FileHeader, PerfData, PipeReader,
    PipeWriter, StreamInput,
};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{Attr, Encoder, Endian, EventType, Misc, RecordKind, SampleType};

use crate::generated::{BOTH, record};

fn event(config: u64, ids: &[u64]) -> EventDesc {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config,
        sample_type: SampleType::IP | SampleType::ID,
        ..Attr::default()
    };
    EventDesc::new(attr, ids.to_vec())
}

fn build_id() -> BuildIdEntry {
    BuildIdEntry {
        pid: -1,
        // 1 is PERF_RECORD_MISC_KERNEL.
        misc: Misc(1 | Misc::BUILD_ID_SIZE.0),
        build_id: [0xab; 20],
        size: 20,
        filename: "[kernel.kallsyms]".to_owned(),
    }
}

/// The type of an EVENT_UPDATE record with a name (`PERF_EVENT_UPDATE__NAME`).
const NAME_UPDATE: u64 = 2;

/// The body of an EVENT_UPDATE record with the name of the event with id 7.
fn update_body(endian: Endian, name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let to = &mut Encoder::new(&mut body, endian);
    to.u64(NAME_UPDATE);
    to.u64(7);
    to.padded_str(name.as_bytes(), 8);
    body
}

/// A stream with two events, features, a sample, a name for the first event, a third event, an old HEADER_EVENT_TYPE record,
/// a hardware trace, and two more samples.
fn stream(endian: Endian) -> Vec<u8> {
    let events = [event(0, &[7, 8]), event(1, &[9])];
    let mut features = FeatureSet::new(endian);
    features.hostname("machine").event_desc(&events);
    features.build_ids(&[build_id()]);
    features.tracing_data(&TracingDataBuilder::new(endian, 8, 4096));
    let mut bytes = Vec::new();
    let mut writer = PipeWriter::with_endian(&mut bytes, &events, &features, endian).unwrap();
    let mut data = Vec::new();
    data.extend(record(RecordKind::SAMPLE, &[1; 16], endian));
    data.extend(record(
        RecordKind::EVENT_UPDATE,
        &update_body(endian, "mine"),
        endian,
    ));
    let mut late = event(2, &[]).attr.encode(endian);
    Encoder::new(&mut late, endian).u64(11);
    data.extend(record(RecordKind::HEADER_ATTR, &late, endian));
    data.extend(record(RecordKind::HEADER_EVENT_TYPE, &[0; 72], endian));
    let mut trace = Vec::new();
    let to = &mut Encoder::new(&mut trace, endian);
    // The size of the payload, then fields that don't matter here.
    to.u64(24);
    to.zeros(32);
    data.extend(record(RecordKind::AUXTRACE, &trace, endian));
    data.extend_from_slice(&[0xff; 24]);
    data.extend(record(RecordKind::SAMPLE, &[2; 16], endian));
    data.extend(record(RecordKind::SAMPLE, &[3; 16], endian));
    writer.write_data(&data).unwrap();
    assert_eq!(writer.bytes(), bytes.len() as u64);
    bytes
}

/// Returns a few bytes per read, sometimes `Interrupted`.
struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
    reads: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = self.step.min(into.len());
        self.bytes.read(&mut into[..most])
    }
}

impl StreamInput for Trickle<'_> {
    fn is_ready(&self) -> bool {
        !self.bytes.is_empty()
    }
}

fn reader(bytes: &[u8], step: usize) -> Result<PipeReader<Trickle<'_>>, Error> {
    // The header of a stream has 16 bytes.
    let (first, bytes) = bytes.split_at(bytes.len().min(16));
    let reads = 0;
    PipeReader::new(first.to_vec(), Trickle { bytes, step, reads })
}

/// Position, type and content of records.
type ReadRecords = Vec<(u64, RecordKind, Vec<u8>)>;

/// All records of a stream, and the error that ended it. Read data is released.
fn drain(reader: &mut PipeReader<Trickle<'_>>) -> (ReadRecords, Option<Error>) {
    let mut seen = Vec::new();
    loop {
        let position = match reader.next_record() {
            Ok(Some(at)) => {
                seen.push((at.position, at.raw.kind, [at.raw.body, at.payload].concat()));
                at.position
            }
            Ok(None) => return (seen, None),
            Err(error) => return (seen, Some(error)),
        };
        reader.release(position);
    }
}

fn parsed_records(data: &PerfData<'_>) -> (ReadRecords, Option<Error>) {
    let mut end = None;
    let mut seen = Vec::new();
    for record in data.records() {
        match record {
            Ok(at) => seen.push((at.position, at.raw.kind, [at.raw.body, at.payload].concat())),
            Err(error) => end = Some(error),
        }
    }
    (seen, end)
}

#[test]
fn written_streams_are_read_back() {
    for endian in BOTH {
        let bytes = stream(endian);
        let data = PerfData::parse(&bytes).unwrap();
        assert!(data.header().is_pipe());
        assert_eq!((data.endian(), data.data_offset()), (endian, 16));
        assert_eq!(data.findings(), []);
        let names: Vec<&str> = data.events().iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["mine", "task-clock:HG", "page-faults:HG"]);
        assert_eq!(data.events()[0].ids, [7, 8]);
        let features = data.features();
        assert_eq!(features.hostname().as_deref(), Some("machine"));
        assert_eq!(features.build_ids(), [build_id()]);
        assert!(features.has(FeatureId::TRACING_DATA));
        // In pipe mode, build-ids come in records of their own, not in a feature section.
        assert!(!features.has(FeatureId::BUILD_ID));
        let (seen, end) = parsed_records(&data);
        assert_eq!(end, None);
        // Newer releases of perf refuse records whose size is not a multiple of eight.
        let is_build_id = |kind: &RecordKind| *kind == RecordKind::HEADER_BUILD_ID;
        let build_ids = seen.iter().filter(|(_, kind, _)| is_build_id(kind));
        let remainders: Vec<usize> = build_ids.map(|(.., content)| content.len() % 8).collect();
        assert_eq!(remainders, [0]);
        let samples = seen
            .iter()
            .filter(|(_, kind, _)| *kind == RecordKind::SAMPLE);
        assert_eq!(samples.count(), 3);
    }
}

#[test]
fn a_stream_gives_the_same_records_as_its_bytes() {
    for endian in BOTH {
        let bytes = stream(endian);
        let data = PerfData::parse(&bytes).unwrap();
        for step in [1, 7, 64, 4096] {
            let mut reader = reader(&bytes, step).unwrap();
            assert_eq!(
                drain(&mut reader),
                parsed_records(&data),
                "{step} bytes at a time"
            );
            assert_eq!(reader.head().events(), data.events());
            let features = reader.head().features();
            assert_eq!(features.build_ids(), data.features().build_ids());
            let present =
                |features: &rperf_perfdata::Features<'_>| features.present().collect::<Vec<_>>();
            assert_eq!(present(features), present(data.features()));
        }
    }
}

#[test]
fn events_are_known_before_their_samples() {
    let bytes = stream(Endian::Little);
    let mut reader = reader(&bytes, 100).unwrap();
    let mut known = Vec::new();
    while let Some(at) = reader.next_record().unwrap() {
        if at.raw.kind == RecordKind::SAMPLE {
            known.push(reader.head().events().len());
        }
    }
    assert_eq!(known, [2, 3, 3]);
}

#[test]
fn a_truncated_stream_keeps_complete_records() {
    let bytes = stream(Endian::Big);
    let (all, _) = parsed_records(&PerfData::parse(&bytes).unwrap());
    for end in 0..bytes.len() {
        let truncated = &bytes[..end];
        if end < 16 {
            assert!(matches!(
                reader(truncated, 9),
                Err(Error::Empty | Error::HeaderTruncated { .. })
            ));
            assert!(PerfData::parse(truncated).is_err());
            continue;
        }
        let mut reader = reader(truncated, 9).unwrap();
        let (seen, reader_error) = drain(&mut reader);
        assert_eq!(seen, all[..seen.len()]);
        match PerfData::parse(truncated) {
            Ok(data) => assert_eq!(parsed_records(&data), (seen, reader_error)),
            // Truncated before the first complete event.
            Err(parse_error) => {
                assert_eq!(parse_error, Error::NoAttrRecord);
                assert_eq!(reader.head().events(), []);
            }
        }
    }
}

#[test]
fn invalid_metadata_is_refused_or_skipped() {
    let mut bytes = stream(Endian::Little);
    // Invalid records that are skipped.
    bytes.extend(record(RecordKind::HEADER_FEATURE, &[1; 12], Endian::Little));
    bytes.extend(record(RecordKind::EVENT_UPDATE, &[1; 4], Endian::Little));
    bytes.extend(record(RecordKind::HEADER_BUILD_ID, &[1; 4], Endian::Little));
    let data = PerfData::parse(&bytes).unwrap();
    assert_eq!(data.findings().len(), 3);
    // A payload size that ends the stream.
    let mut huge = bytes.clone();
    huge.extend(record(RecordKind::AUXTRACE, &[0x7f; 40], Endian::Little));
    let (_, end) = drain(&mut reader(&huge, 4096).unwrap());
    assert!(matches!(end, Some(Error::PayloadSize { .. })), "{end:?}");
    // An invalid attr ends the stream: a sample after it is not read.
    bytes.extend(record(RecordKind::HEADER_ATTR, &[1; 20], Endian::Little));
    assert!(matches!(PerfData::parse(&bytes), Err(Error::Decode { .. })));
    bytes.extend(record(RecordKind::SAMPLE, &[4; 16], Endian::Little));
    let mut reader = reader(&bytes, 4096).unwrap();
    let (_, end) = drain(&mut reader);
    assert!(matches!(end, Some(Error::Decode { .. })), "{end:?}");
    let (after, end) = drain(&mut reader);
    assert_eq!((after.len(), end), (0, None));
}

#[test]
fn a_header_of_104_bytes_is_that_of_a_file() {
    // The magic, the size as eight bytes, and more zeros than the other fields need.
    let file = FileHeader::decode(&[b"PERFILE2".as_slice(), &[104], &[0; 103]].concat());
    assert!(!file.unwrap().is_pipe());
}

#[test]
fn a_name_for_an_undescribed_event_is_kept() {
    let mut bytes = stream(Endian::Little);
    let body = [NAME_UPDATE, 99].map(u64::to_le_bytes).concat();
    let body = [&body[..], b"lonely\0\0"].concat();
    bytes.extend(record(RecordKind::EVENT_UPDATE, &body, Endian::Little));
    let data = PerfData::parse(&bytes).unwrap();
    // The name of the described event is in `events` instead.
    let updates = data.updates();
    assert_eq!(updates.len(), 1);
    assert_eq!(
        updates[0].property,
        EventProperty::Name("lonely".to_owned())
    );
}

/// A HEADER_TRACING_DATA record with the format of one tracepoint.
fn format_record(id: u64, endian: Endian) -> Vec<u8> {
    let mut builder = TracingDataBuilder::new(endian, 8, 4096);
    let text = format!("name: event{id}\nID: {id}\nformat:\n");
    builder.event("made", text.as_bytes());
    let data = builder.encode();
    let mut size = Vec::new();
    Encoder::new(&mut size, endian).u32(u32::try_from(data.len()).unwrap());
    let mut bytes = record(RecordKind::HEADER_TRACING_DATA, &size, endian);
    bytes.extend(data);
    bytes
}

#[test]
fn descriptions_of_tracepoints_add_up() {
    for endian in BOTH {
        let events = [3, 4].map(|id| {
            let attr = Attr {
                kind: EventType::TRACEPOINT,
                ..event(id, &[]).attr
            };
            EventDesc::new(attr, vec![id])
        });
        let mut bytes = Vec::new();
        let none = FeatureSet::new(endian);
        let mut writer = PipeWriter::with_endian(&mut bytes, &events, &none, endian).unwrap();
        writer.write_data(&format_record(3, endian)).unwrap();
        writer.write_data(&format_record(4, endian)).unwrap();
        let data = PerfData::parse(&bytes).unwrap();
        let formats = data.features().formats().unwrap();
        let names: Vec<&str> = data.events().iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["made:event3", "made:event4"]);
        for event in data.events() {
            let tracepoint = formats.of_event(&event.attr).unwrap();
            assert_eq!(
                (tracepoint.name(), tracepoint.abi.endian),
                (event.name.clone(), endian)
            );
            // The formats are parsed only once.
            let again = data.clone().features().formats().unwrap();
            assert!(Arc::ptr_eq(
                tracepoint,
                again.of_event(&event.attr).unwrap()
            ));
        }
    }
}
