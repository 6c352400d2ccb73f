//! Records of perf's user space: what is encoded is decoded again, and no cut body panics.

use proptest::collection::vec;
use proptest::prelude::*;
use rperf_wire::{
    AuxTrace, AuxTraceError, AuxTraceInfo, BpfMetadata, CpuMap, Encoder, Endian, EventTypeName,
    FeatureData, IdIndex, IdIndexEntry, Misc, RawRecord, RecordKind, ShortClock, Stat, StatConfig,
    StatRound, ThreadMap, ThreadMapEntry, TimeConv, U64s, UserRecord,
};

fn endians() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

/// Names that fit into the smallest room, or fill it.
fn names() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., 0..=16)
}

fn cpu_maps() -> impl Strategy<Value = CpuMap> {
    prop_oneof![
        vec(any::<u16>(), 0..9).prop_map(CpuMap::List),
        vec(any::<u32>(), 0..9).prop_map(CpuMap::Mask32),
        vec(any::<u64>(), 0..9).prop_map(CpuMap::Mask64),
        any::<(bool, u16, u16)>().prop_map(|(any, first, last)| CpuMap::Range { any, first, last }),
        (3_u16..).prop_map(CpuMap::Other),
    ]
}

fn body(record: &UserRecord<'_>, endian: Endian) -> Vec<u8> {
    let mut body = Vec::new();
    record.encode_body(&mut Encoder::new(&mut body, endian));
    body
}

fn decode<'a>(kind: RecordKind, body: &'a [u8], endian: Endian) -> Option<UserRecord<'a>> {
    let misc = Misc(0);
    UserRecord::decode(&RawRecord { kind, misc, body }, endian).ok()
}

/// Records whose fields are numbers, from these.
fn numbers(n: [u64; 6], m: [u32; 6], time: bool, machine: bool) -> Vec<UserRecord<'static>> {
    let [a, b, c, d, e, f] = n;
    let [kind, code, cpu, pid, tid, index] = m;
    let entry = |id| IdIndexEntry {
        id,
        index: b,
        cpu: c,
        tid: d,
        machine: machine.then_some((e, f)),
    };
    let short = ShortClock {
        cycles: d,
        mask: e,
        has_zero: time,
        is_short: machine,
    };
    vec![
        UserRecord::TracingData(kind),
        UserRecord::FinishedRound,
        UserRecord::FinishedInit,
        UserRecord::IdIndex(IdIndex {
            entries: (0..a % 5).map(entry).collect(),
        }),
        UserRecord::AuxTrace(AuxTrace {
            size: a,
            offset: b,
            reference: c,
            index,
            tid,
            cpu,
        }),
        UserRecord::AuxTraceError(AuxTraceError {
            kind,
            code,
            cpu,
            pid,
            tid,
            ip: a,
            time: time.then_some(b),
            message: b"overflow",
            machine: (time && machine).then_some((code, index)),
        }),
        UserRecord::StatConfig(StatConfig {
            terms: (0..b % 5).map(|tag| (tag, c)).collect(),
        }),
        UserRecord::Stat(Stat {
            id: a,
            cpu,
            thread: tid,
            value: b,
            enabled: c,
            running: d,
        }),
        UserRecord::StatRound(StatRound { kind: a, time: b }),
        UserRecord::TimeConv(TimeConv {
            shift: a,
            mult: b,
            zero: c,
            short: machine.then_some(short),
        }),
    ]
}

proptest! {
    #[test]
    fn records_of_numbers_come_back(
        n in any::<[u64; 6]>(), m in any::<[u32; 6]>(), time in any::<bool>(), machine in any::<bool>(),
        endian in endians(),
    ) {
        for record in numbers(n, m, time, machine) {
            let bytes = body(&record, endian);
            let kind = record.kind();
            prop_assert_eq!(decode(kind, &bytes, endian), Some(record));
            for end in 0..bytes.len() {
                drop(decode(kind, &bytes[..end], endian));
            }
        }
    }

    #[test]
    fn records_of_names_come_back(
        number in any::<u64>(), name in names(), other in names(), count in 0_usize..4,
        data in vec(any::<u8>(), 0..64), map in cpu_maps(), endian in endians(),
    ) {
        let private = U64s::new(&data[..data.len() / 8 * 8], endian);
        let thread = ThreadMapEntry { pid: number, comm: name.clone() };
        for record in [
            UserRecord::EventType(EventTypeName { event_id: number, name: &name }),
            UserRecord::Feature(FeatureData { feature: number, data: &data }),
            UserRecord::AuxTraceInfo(AuxTraceInfo { kind: 7, private }),
            UserRecord::ThreadMap(ThreadMap { threads: vec![thread; count] }),
            UserRecord::CpuMap(map),
            UserRecord::BpfMetadata(BpfMetadata {
                program: &name,
                entries: vec![(&name[..], &other[..]); count],
            }),
        ] {
            let bytes = body(&record, endian);
            let kind = record.kind();
            prop_assert_eq!(decode(kind, &bytes, endian), Some(record));
            for end in 0..bytes.len() {
                drop(decode(kind, &bytes[..end], endian));
            }
        }
    }
}

/// Bytes as perf 6.1 writes them: the mask stands unaligned behind four bytes of padding.
#[test]
fn a_mask_of_64_bits() {
    let bytes = [
        1, 0, 2, 0, 8, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    ];
    let found = decode(RecordKind::CPU_MAP, &bytes, Endian::Little);
    let Some(UserRecord::CpuMap(map)) = found else {
        panic!("not a map: {found:?}");
    };
    assert_eq!(map.cpus(), [0, 2, 64]);
    assert_eq!(map, CpuMap::Mask64(vec![5, 1]));
}

#[test]
fn a_range_that_runs_backwards_is_empty() {
    let map = CpuMap::Range {
        any: false,
        first: 5,
        last: 2,
    };
    assert_eq!(map.cpus(), []);
}

/// A message that ends the record has no more room than it needs.
#[test]
fn messages_and_names_may_be_short() {
    for (format, time) in [(0_u32, None), (1, Some(9_u64))] {
        let mut bytes = Vec::new();
        let mut to = Encoder::new(&mut bytes, Endian::Little);
        [1, 2, 3, 4, 5, format]
            .iter()
            .for_each(|word| to.u32(*word));
        to.u64(6);
        time.iter().for_each(|time| to.u64(*time));
        to.bytes(b"overflow\0\0\0\0\0\0\0\0");
        let error = UserRecord::AuxTraceError(AuxTraceError {
            kind: 1,
            code: 2,
            cpu: 3,
            pid: 4,
            tid: 5,
            ip: 6,
            time,
            message: b"overflow",
            machine: None,
        });
        let found = decode(RecordKind::AUXTRACE_ERROR, &bytes, Endian::Little);
        assert_eq!(found.as_ref(), Some(&error));
        assert_eq!(body(&error, Endian::Little), bytes);
    }
    let name = UserRecord::EventType(EventTypeName {
        event_id: 0x1234,
        name: b"sched_switch",
    });
    let bytes = b"\x34\x12\0\0\0\0\0\0sched_switch\0\0\0\0";
    let found = decode(RecordKind::HEADER_EVENT_TYPE, bytes, Endian::Little);
    assert_eq!(found.as_ref(), Some(&name));
    assert_eq!(body(&name, Endian::Little), bytes);
}
