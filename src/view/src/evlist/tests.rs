//! The text of `evlist` for recordings that the tests build.

use rperf_perfdata::{FeatureSet, feature::GroupDesc};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, SampleType};

use super::*;
use crate::test_recordings;

fn event(name: &str, attr: Attr) -> EventDesc {
    let name = name.to_owned();
    EventDesc {
        name,
        ..EventDesc::new(attr, vec![1])
    }
}

/// A file with these events and groups. Each group is given as its name, the index of its leader and its number of events.
fn file(endian: Endian, events: &[EventDesc], groups: &[(&str, u32, u32)]) -> Vec<u8> {
    let group = |(name, leader, members): &(&str, u32, u32)| GroupDesc {
        name: (*name).to_owned(),
        leader: *leader,
        members: *members,
    };
    let groups: Vec<GroupDesc> = groups.iter().map(group).collect();
    let mut features = FeatureSet::new(endian);
    features.event_desc(events).group_desc(&groups);
    test_recordings::file(endian, events, &features)
}

fn text(file: &[u8], options: &EvlistOptions<'_>) -> String {
    let data = PerfData::parse(file).unwrap();
    let mut out = Vec::new();
    write_events(&mut out, &data, file, options).unwrap();
    String::from_utf8(out).unwrap()
}

/// A software event with a frequency, and with a bit in `sample_type` and a flag that have no names.
fn clock(name: &str) -> EventDesc {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_period: 99,
        sample_type: SampleType::IP | SampleType(1 << 40),
        flags: AttrFlags::FREQ | AttrFlags(1 << 50),
        ..Attr::default()
    };
    event(name, attr)
}

#[test]
fn groups_are_on_the_line_of_their_leader() {
    let events = ["a", "b", "c", "d", "e"].map(clock);
    // `{anon_group}`, perf's name for unnamed groups, is not shown; a group of one event is shown like an event without a group.
    let groups = [("{anon_group}", 0, 2), ("mine", 3, 2), ("", 2, 1)];
    let bytes = file(Endian::Little, &events, &groups);
    let options = EvlistOptions {
        groups: true,
        ..EvlistOptions::default()
    };
    assert_eq!(text(&bytes, &options), "{a,b}\nc\nmine{d,e}\n");
    assert_eq!(
        text(&bytes, &EvlistOptions::default()),
        "a\nb\nc\nd\ne\n",
        "not requested"
    );
}

#[test]
fn a_group_that_reaches_beyond_the_events_ends_with_them() {
    let options = EvlistOptions {
        groups: true,
        ..EvlistOptions::default()
    };
    // From event 1, only one event is left for the group; there is no event 9.
    for (leader, expected) in [(0, "{a,b}\n"), (1, "a\nb\n"), (9, "a\nb\n")] {
        let events = [clock("a"), clock("b")];
        let bytes = file(Endian::Little, &events, &[("", leader, u32::MAX)]);
        assert_eq!(text(&bytes, &options), expected);
    }
}

/// The unnamed bits are those of [`clock`]; `config` is printed even if it is 0.
#[test]
fn unnamed_attr_bits_are_printed_for_all_sizes_and_byte_orders() {
    let wide = Attr {
        config3: 5,
        ..clock("").attr
    };
    for (endian, attr, size, more) in [
        (Endian::Little, clock("").attr, 128, ""),
        (Endian::Big, clock("").attr, 128, ""),
        // The size of the first layout with `config3`.
        (Endian::Little, wide, 136, ", config3: 0x5"),
    ] {
        let bytes = file(endian, &[event("clock", attr)], &[]);
        let options = EvlistOptions {
            detail: EvlistDetail::Attr,
            ..EvlistOptions::default()
        };
        assert_eq!(
            text(&bytes, &options),
            format!(
                "clock: type: 1, size: {size}, config: 0, {{ sample_period, sample_freq }}: 99, \
                 sample_type: IP|0x10000000000, freq: 1, flags: 0x4000000000000{more}\n"
            )
        );
    }
}

#[test]
fn each_event_has_its_frequency_or_its_period() {
    let fixed = Attr {
        sample_period: 7,
        ..Attr::default()
    };
    let bytes = file(Endian::Little, &[clock("a"), event("b", fixed)], &[]);
    let fields = TraceFields::new(PerfData::parse(&bytes).unwrap().metadata()).unwrap();
    let options = EvlistOptions {
        detail: EvlistDetail::Frequency,
        groups: false,
        trace_fields: Some(&fields),
    };
    assert_eq!(
        text(&bytes, &options),
        "a: sample_freq=99, (not a tracepoint)\nb: sample_period=7, (not a tracepoint)\n"
    );
}

#[test]
fn a_tracepoint_without_a_description_is_reported() {
    let attr = Attr {
        kind: EventType::TRACEPOINT,
        config: 5,
        ..Attr::default()
    };
    let bytes = file(Endian::Little, &[event("sched:gone", attr)], &[]);
    let fields = TraceFields::new(PerfData::parse(&bytes).unwrap().metadata()).unwrap();
    assert_eq!(fields.undescribed().collect::<Vec<_>>(), ["sched:gone"]);
    let options = EvlistOptions {
        trace_fields: Some(&fields),
        ..EvlistOptions::default()
    };
    assert_eq!(text(&bytes, &options), "sched:gone: (no trace field)\n");
}
