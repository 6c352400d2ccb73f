//! Rewriting a recording loses nothing.

use std::fs;
use std::io::Cursor;

use rperf_perfdata::feature::AuxIndexEntry;
use rperf_perfdata::{EventDesc, FeatureId, FeatureSet, PerfData};
use rperf_testkit::{Bytes, recording_candidates};
use rperf_wire::{Attr, Endian};

use crate::generated::{BOTH, file};

fn rewritten(data: &PerfData<'_>) -> Vec<u8> {
    let (finished, output) = data.rewrite(Cursor::new(Vec::new())).expect("memory");
    let bytes = output.into_inner();
    assert_eq!(finished.file_bytes, bytes.len() as u64);
    bytes
}

/// The section of event type names in very old files.
fn event_types<'a>(bytes: &'a [u8], data: &PerfData<'_>) -> &'a [u8] {
    data.header().event_types.of(bytes).unwrap_or_default()
}

/// Compares the original with the rewritten file; `None` if the original is not a recording.
fn compare(name: &str, bytes: &[u8]) -> Option<()> {
    let before = PerfData::parse(bytes).ok()?;
    let copy = rewritten(&before);
    let after = PerfData::parse(&copy).expect("a file that was written");
    assert_eq!(before.events(), after.events(), "{name}: events");
    assert_eq!(before.updates(), after.updates(), "{name}: updates");
    assert!(before.data() == after.data(), "{name}: records");
    assert_eq!(
        event_types(bytes, &before),
        event_types(&copy, &after),
        "{name}: names"
    );
    let (old, new) = (before.features(), after.features());
    assert!(old.present().eq(new.present()), "{name}: features");
    // The index of AUX traces has file offsets, which may differ: those relative to the first record are compared below.
    for feature in old.present().filter(|id| *id != FeatureId::AUXTRACE) {
        assert!(old.raw(feature) == new.raw(feature), "{name}: {feature}");
    }
    let traces = |data: &PerfData<'_>| -> Option<Vec<(u64, u64)>> {
        let entries = data.features().aux_index()?;
        let start = data.data_offset();
        let from_start = |entry: AuxIndexEntry| (entry.file_offset.wrapping_sub(start), entry.size);
        Some(entries.into_iter().map(from_start).collect())
    };
    assert_eq!(traces(&before), traces(&after), "{name}: traces");
    assert!(
        rewritten(&after) == copy,
        "{name}: the copy of the copy differs"
    );
    Some(())
}

#[test]
fn rewritten_recordings_have_the_same_content() {
    let mut compared = 0;
    for path in recording_candidates(u64::MAX) {
        let bytes = fs::read(&path).expect("a file that was listed");
        compared += usize::from(compare(&path.display().to_string(), &bytes).is_some());
    }
    // tests/fixtures alone has more than 20 recordings; fewer means that they were not found.
    assert!(compared >= 20, "{compared} recordings");
}

/// Attr fields, bits, features and a record that no current version of perf has.
#[test]
fn unknown_content_is_preserved() {
    for endian in BOTH {
        let mut attr = Attr {
            config: 7,
            unknown: vec![0, 1, 2, 3, 0, 0, 0, 0],
            ..Attr::default()
        };
        attr.flags.0 |= 1 << 63;
        attr.sample_type.0 |= 1 << 62;
        let plain = EventDesc::new(Attr::default(), vec![4]);
        let events = [EventDesc::new(attr, vec![1, 2, 3]), plain];
        let bytes = match endian {
            Endian::Little => Bytes::new(),
            Endian::Big => Bytes::big_endian(),
        };
        // A header with type 60, misc 9 and size 16; a body of eight bytes.
        let record = bytes.u32(60).u16(9).u16(16).u64(5).done();
        let mut features = FeatureSet::new(endian);
        features.hostname("machine");
        features.opaque(FeatureId(250), &[1, 2, 3]);
        features.opaque(FeatureId::SIMPLEPERF_FILE2, &[9; 40]);
        let file = file(&events, &record, &features, endian);
        let data = PerfData::parse(&file).expect("valid");
        assert_eq!(data.events(), events);
        let copy = rewritten(&data);
        assert!(copy == file, "byte for byte");
    }
}
