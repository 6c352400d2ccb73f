//! Truncated, foreign and damaged files are refused or read without a panic.

use std::io::Cursor;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_perfdata::feature::{BuildIdEntry, NrCpus};
use rperf_perfdata::{Error, EventDesc, FeatureSet, FileFinding, PerfData, Writer};
use rperf_replay::{FoldControl, Replay};
use rperf_wire::{
    Attr, Comm, Encoder, Endian, Misc, Mmap, Record, RecordHeader, RecordKind, SampleId,
    SampleIdLayout, SampleLayout, SampleType, U64s,
};

use crate::USER;
use crate::exercise::{Count, OrderedCount};
use crate::file::attr;

/// Replays the bytes unordered and in order of time. Returns the number of samples, and the error at which the records
/// end, if any; or the message of an error that prevents reading.
fn read(bytes: &[u8]) -> Result<(u64, Option<Error>), String> {
    let data = PerfData::parse(bytes).map_err(|error| error.to_string())?;
    let replay = Replay::open(&data).map_err(|error| error.to_string())?;
    let threads = NonZeroUsize::new(2).expect("not zero");
    let folded = replay.fold(threads, Count::default).0;
    let mut ordered = 0;
    let mut take = |count: &mut u64| {
        ordered += *count;
        FoldControl::Continue
    };
    replay
        .ordered(NonZeroUsize::MIN, &OrderedCount, &mut take)
        .expect("enough memory");
    assert_eq!(folded, ordered, "both replays see the same samples");
    let diagnostics = replay.diagnostics();
    let counted: u64 = replay.sample_counts().iter().sum();
    assert_eq!(folded + diagnostics.bad_samples.count, counted);
    Ok((folded, diagnostics.end))
}

fn features(endian: Endian, event: &EventDesc) -> FeatureSet {
    let mut features = FeatureSet::new(endian);
    features.build_ids(&[BuildIdEntry {
        pid: -1,
        misc: Misc(USER.0 | Misc::BUILD_ID_SIZE.0),
        build_id: [7; 20],
        size: 20,
        filename: "/bin/true".to_owned(),
    }]);
    features.hostname("host").arch("x86_64").version("6.1");
    features.nr_cpus(NrCpus {
        online: 2,
        available: 2,
    });
    features.cmdline(&["perf", "record", "-g"]);
    features.event_desc(std::slice::from_ref(event));
    features.sample_time(100, 120);
    features
}

fn body(endian: Endian, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut body = Vec::new();
    write(&mut Encoder::new(&mut body, endian));
    body
}

fn push(data: &mut Vec<u8>, endian: Endian, kind: RecordKind, misc: u16, body: &[u8]) {
    let size = u16::try_from(body.len() + 8).expect("a small record");
    let misc = Misc(misc);
    let mut to = Encoder::new(data, endian);
    RecordHeader { kind, misc, size }.encode(&mut to);
    to.bytes(body);
}

/// Records of one process with `samples` samples.
fn records(endian: Endian, attr: &Attr, samples: u32) -> Vec<u8> {
    let trailer = SampleIdLayout::new(attr.sample_type);
    let mut data = Vec::new();
    let comm = Record::Comm(Comm {
        pid: 5,
        tid: 5,
        comm: b"true",
    });
    let mmap = Record::Mmap(Mmap {
        pid: 5,
        tid: 5,
        start: 0x1000,
        len: 0x1000,
        pgoff: 0,
        filename: b"/bin/true",
    });
    for (record, misc) in [(comm, 0), (mmap, USER.0)] {
        let body = body(endian, |to| {
            record.encode_body(to);
            trailer.encode(&SampleId::default(), to);
        });
        push(&mut data, endian, record.kind_and_misc().0, misc, &body);
    }
    let chain = body(endian, |to| {
        [0x1100, 0x1200, 0x9000].iter().for_each(|ip| to.u64(*ip))
    });
    for number in 0..samples {
        let sample = rperf_wire::SampleRecord {
            ip: Some(0x1100),
            pid_tid: Some((5, 5)),
            time: Some(100 + u64::from(number)),
            callchain: Some(U64s::new(&chain, endian)),
            ..rperf_wire::SampleRecord::default()
        };
        let body = body(endian, |to| SampleLayout::new(attr).encode(&sample, to));
        push(&mut data, endian, RecordKind::SAMPLE, USER.0, &body);
    }
    push(&mut data, endian, RecordKind::FINISHED_ROUND, 0, &[]);
    data
}

/// A small complete recording.
pub(crate) fn recording(endian: Endian, samples: u32) -> Vec<u8> {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::CALLCHAIN;
    let event = EventDesc {
        attr: attr(sample_type),
        ids: vec![1, 2],
        name: "cpu-clock".to_owned(),
    };
    let events = std::slice::from_ref(&event);
    let mut writer =
        Writer::with_endian(Cursor::new(Vec::new()), events, endian).expect("in memory");
    let records = records(endian, &event.attr, samples);
    writer.write_data(&records).expect("in memory");
    let (_, out) = writer.finish(&features(endian, &event)).expect("in memory");
    out.into_inner()
}

#[test]
fn complete_files_of_both_byte_orders_are_read() {
    for endian in [Endian::Little, Endian::Big] {
        let file = recording(endian, 20);
        assert_eq!(read(&file), Ok((20, None)));
        let data = PerfData::parse(&file).expect("a valid file");
        assert_eq!(data.findings(), []);
        assert_eq!(data.events()[0].name, "cpu-clock");
        let replay = Replay::open(&data).expect("a valid recording");
        let dso = replay.world().dsos().first().expect("from the build-ids");
        assert_eq!(
            (dso.name.as_str(), dso.build_id.as_deref()),
            ("/bin/true", Some(&[7; 20][..]))
        );
        assert_eq!(replay.world().mappings().len(), 1);
    }
}

#[test]
fn truncation_at_every_length_keeps_complete_records_or_fails() {
    let file = recording(Endian::Little, 20);
    let data = PerfData::parse(&file).expect("a valid file");
    let start = usize::try_from(data.data_offset()).expect("small");
    let end = start + data.data().len();
    let positions: Vec<usize> = data
        .records()
        .map(|at| usize::try_from(at.expect("complete").position).expect("small"))
        .collect();
    for length in 0..file.len() {
        let truncated = file.get(..length).expect("shorter");
        // Files that end before the data are refused; all others are read.
        let Ok((samples, stop)) = read(truncated) else {
            assert!(length < start, "a file with data is read, length {length}");
            continue;
        };
        // The number of records of which at least one byte is left.
        let started = positions.iter().filter(|&&at| at < length.min(end)).count();
        assert!(samples <= 20);
        if length >= end {
            assert_eq!((samples, stop), (20, None));
        } else if positions.contains(&length) {
            assert_eq!(stop, None, "length {length}");
            // The first two records are not samples.
            assert_eq!(samples, (started as u64).saturating_sub(2));
        } else {
            let offset = positions[started - 1] as u64;
            assert!(matches!(stop, Some(Error::Truncated { offset: at, .. }) if at == offset));
        }
    }
}

#[test]
fn a_killed_recording_is_read_to_its_end() {
    let mut file = recording(Endian::Little, 20);
    let data = PerfData::parse(&file).expect("a valid file");
    let end = usize::try_from(data.data_offset()).expect("small") + data.data().len();
    file.truncate(end);
    // The header's data size is at offset 48.
    file.get_mut(48..56).expect("a header").fill(0);
    let data = PerfData::parse(&file).expect("readable");
    assert_eq!(data.findings(), [FileFinding::Unfinished]);
    assert_eq!(data.features().present().count(), 0);
    // The event's name was lost with the features. This name is derived from the attr, which excludes neither host nor guest.
    assert_eq!(data.events()[0].name, "cpu-clock:HG");
    assert_eq!(read(&file), Ok((20, None)));
}

#[test]
fn foreign_files_are_refused() {
    let cases: [(&[u8], Error); 5] = [
        (b"", Error::Empty),
        (b"PERF", Error::HeaderTruncated { have: 4 }),
        // The magic number of perf's first versions; the next 8 bytes are the size of the header.
        (
            b"PERFFILE and so on",
            Error::HeaderSize {
                size: u64::from_le_bytes(*b" and so "),
            },
        ),
        (
            b"\x7fELF\x02\x01\x01\0\0\0",
            Error::Magic {
                magic: b"\x7fELF\x02\x01\x01\0".to_vec(),
            },
        ),
        (
            b"#!/bin/sh",
            Error::Magic {
                magic: b"#!/bin/s".to_vec(),
            },
        ),
    ];
    for (bytes, error) in cases {
        assert_eq!(PerfData::parse(bytes).expect_err("not a recording"), error);
    }
    let text = Error::Magic {
        magic: b"#!/bin/s".to_vec(),
    }
    .to_string();
    assert_eq!(
        text,
        "not a perf.data file: it begins with \"#!/bin/s\", not \"PERFILE2\""
    );
}

#[test]
fn reading_ends_at_an_invalid_record() {
    let mut file = recording(Endian::Little, 20);
    let data = PerfData::parse(&file).expect("a valid file");
    let offset = data
        .records()
        .nth(4)
        .expect("there")
        .expect("complete")
        .position;
    // The size is the last field of the record's header.
    let size_at = usize::try_from(offset).expect("small") + 6;
    file.get_mut(size_at..size_at + 2)
        .expect("a record")
        .fill(0);
    let error = Error::RecordSize { offset, size: 0 };
    // Before the invalid record there are COMM, MMAP and two samples.
    assert_eq!(read(&file), Ok((2, Some(error))));
}

#[test]
fn compressed_records_are_refused_without_the_header_feature() {
    let mut file = recording(Endian::Little, 3);
    let data = PerfData::parse(&file).expect("a valid file");
    let offset = data
        .records()
        .nth(3)
        .expect("there")
        .expect("complete")
        .position;
    // The type is the first field of the record's header.
    let kind_at = usize::try_from(offset).expect("small");
    let compressed = RecordKind::COMPRESSED.0.to_le_bytes();
    file.get_mut(kind_at..kind_at + 4)
        .expect("a record")
        .copy_from_slice(&compressed);
    let text = format!(
        "record at offset {offset:#x} is compressed, although the header has no compression"
    );
    assert_eq!(read(&file), Err(text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_never_panic(
        big in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let mut file = recording(endian, 6);
        for (place, value) in damage {
            let place = place.index(file.len());
            file[place] = value;
        }
        if let Some(end) = end {
            file.truncate(end.index(file.len()));
        }
        let _seen = read(&file);
    }

    #[test]
    fn any_bytes_after_the_magic_never_panic(tail in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut file = b"PERFILE2".to_vec();
        // The size of the file's header.
        file.extend(104_u64.to_le_bytes());
        file.extend(tail);
        let _seen = read(&file);
    }
}
