use rperf_wire::{Attr, EventType, Misc, RecordHeader, RecordKind, SampleType};

use super::*;
use crate::{FeatureId, PerfData};

/// Memory of limited capacity, like a disk.
#[derive(Debug)]
struct Disk {
    memory: Cursor<Vec<u8>>,
    capacity: u64,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = usize::try_from(self.capacity.saturating_sub(self.memory.position())).unwrap();
        if left == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.memory.write(&bytes[..bytes.len().min(left)])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.memory.seek(to)
    }
}

impl Output for Disk {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.memory.set_size(size)
    }
}

fn events() -> Vec<EventDesc> {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_period: 4000,
        sample_type: SampleType::IP | SampleType::IDENTIFIER,
        ..Attr::default()
    };
    // Only newer, larger versions of the attr have `config3`. All attrs of a file have one size, here the larger one.
    let with_config3 = Attr {
        config3: 7,
        ..attr.clone()
    };
    vec![
        EventDesc {
            attr,
            ids: vec![10, 11],
            name: "clock".to_owned(),
        },
        EventDesc {
            attr: with_config3,
            ids: vec![12],
            name: "other".to_owned(),
        },
    ]
}

/// Builds a record of 24 bytes.
fn record(number: u64, endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut to = Encoder::new(&mut bytes, endian);
    let header = RecordHeader {
        kind: RecordKind::LOST,
        misc: Misc(0),
        size: 24,
    };
    header.encode(&mut to);
    to.u64(number);
    to.u64(number);
    bytes
}

fn records(count: u64) -> Vec<u8> {
    (0..count)
        .flat_map(|number| record(number, Endian::NATIVE))
        .collect()
}

fn features() -> FeatureSet {
    let mut features = FeatureSet::new(Endian::NATIVE);
    features.hostname("machine").event_desc(&events());
    features
}

#[test]
fn written_files_are_read_back_in_both_byte_orders() {
    for endian in [Endian::Little, Endian::Big] {
        let mut writer = Writer::with_endian(Cursor::new(Vec::new()), &events(), endian).unwrap();
        writer.write_data(&record(1, endian)).unwrap();
        writer.write_data(&[]).unwrap();
        writer.write_data(&record(2, endian)).unwrap();
        let mut features = FeatureSet::new(endian);
        features.hostname("machine").event_desc(&events());
        // A feature whose section is empty.
        features.branch_stack();
        let (finished, output) = writer.finish(&features).unwrap();
        let bytes = output.into_inner();
        assert_eq!(finished.data_bytes, 48);
        assert_eq!(finished.file_bytes, bytes.len() as u64);
        let file = PerfData::parse(&bytes).unwrap();
        assert!(file.findings().is_empty(), "{:?}", file.findings());
        assert_eq!(
            (file.endian(), file.events()),
            (endian, events().as_slice())
        );
        assert_eq!(file.records().filter_map(Result::ok).count(), 2);
        assert_eq!(file.features().hostname().as_deref(), Some("machine"));
        assert!(file.features().has(FeatureId::BRANCH_STACK), "empty");
    }
}

#[test]
fn a_killed_recording_is_read_to_its_end() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), &events()).unwrap();
    writer.write_data(&records(3)).unwrap();
    // A killed recorder doesn't get to `finish`.
    let bytes = writer.data.output.into_inner();
    let file = PerfData::parse(&bytes).unwrap();
    assert_eq!(file.records().filter_map(Result::ok).count(), 3);
    assert_eq!(file.findings(), [crate::FileFinding::Unfinished]);
}

#[test]
fn records_after_the_data_size_in_the_header_are_read() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), &events()).unwrap();
    writer.write_data(&records(5)).unwrap();
    // Without `finish`, the data size in the header is 0.
    let mut bytes = writer.data.output.into_inner();
    let at = usize::try_from(FileHeader::DATA_SIZE_OFFSET).unwrap();
    assert_eq!(bytes[at..at + 8], [0; 8]);
    // A recorder that updates the size while it records, killed after three of the five records were counted.
    bytes[at..at + 8].copy_from_slice(&(3_u64 * 24).to_ne_bytes());
    let file = PerfData::parse(&bytes).unwrap();
    assert_eq!(file.header().data.size, 3 * 24);
    assert_eq!(file.records().filter_map(Result::ok).count(), 5);
    assert_eq!(file.findings(), [crate::FileFinding::Unfinished]);
}

/// For every disk on which the header but not all records fit: the kept records are complete, and the header has their size.
#[test]
fn a_full_disk_keeps_complete_records() {
    let preamble = Preamble {
        events: &events(),
        event_types: &[],
        endian: Endian::NATIVE,
    };
    let (header, _) = preamble.encode();
    let start = header.data.offset;
    for capacity in start..start + 24 * 5 {
        let disk = Disk {
            memory: Cursor::new(Vec::new()),
            capacity,
        };
        let mut writer = Writer::new(disk, &events()).unwrap();
        // Fails if not even one record fits; the next call then returns `Ended`.
        writer.write_data(&records(1)).ok();
        let error = writer.write_data(&records(4)).unwrap_err();
        let complete = (capacity - start) / 24;
        assert_eq!(writer.data_bytes(), complete * 24);
        match error {
            WriteError::Data { offset, kept, .. } => {
                assert_eq!((offset, kept), (capacity, complete * 24))
            }
            WriteError::Ended { offset } => assert_eq!(offset, start),
            WriteError::Header(_) | WriteError::End(_) => panic!("{error}: only data was written"),
        }
        let (finished, disk) = writer.finish(&features()).unwrap();
        assert!(finished.features_lost.is_some());
        let bytes = disk.memory.into_inner();
        assert_eq!(finished.file_bytes, bytes.len() as u64);
        // A file without records would be taken for that of a killed recorder.
        if complete > 0 {
            let file = PerfData::parse(&bytes).unwrap();
            assert_eq!(
                file.records().filter_map(Result::ok).count() as u64,
                complete
            );
            assert!(file.findings().is_empty());
        }
    }
}

#[test]
fn a_disk_too_small_for_the_header_is_an_error() {
    let disk = Disk {
        memory: Cursor::new(Vec::new()),
        // Enough for the fixed header of 104 bytes, but not for ids and attrs, which are written with it.
        capacity: 200,
    };
    assert!(matches!(
        Writer::new(disk, &events()),
        Err(WriteError::Header(_))
    ));
}
