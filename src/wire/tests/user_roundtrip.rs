//! Records of perf's user space are decoded as they were encoded, and no truncated body panics.

use proptest::collection::vec;
use proptest::prelude::*;
use rperf_wire::{
    AuxTrace, AuxTraceError, AuxTraceInfo, BpfMetadata, CpuCounters, CpuMap, DomainCounters,
    Encoder, Endian, EventTypeName, FeatureData, HardwareClock, IdIndex, IdIndexEntry, Imbalance,
    LoadBalance, Misc, Moves, RawRecord, RecordKind, Schedstat, SchedstatCpu, SchedstatDomain,
    Stat, StatConfig, StatRound, ThreadMap, ThreadMapEntry, TimeConv, U64s, UserRecord,
};

fn endians() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

/// Names of at most 16 bytes, which fit into the smallest field or fill it.
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

/// Records of a version of `/proc/schedstat`: with counters from `words` for a known one (15 to 17), otherwise with the bytes
/// `other`.
fn schedstat(version: u16, words: [u32; 8], other: &[u8]) -> [UserRecord<'_>; 2] {
    let [a, b, c, d, e, f, g, h] = words;
    let known = (15..=17).contains(&version);
    let balance = |count| LoadBalance {
        count,
        balanced: a,
        failed: b,
        imbalance: match version {
            17 => Imbalance::ByKind {
                load: c,
                util: d,
                task: e,
                misfit: f,
            },
            _ => Imbalance::Sum(c),
        },
        gained: d,
        hot_gained: e,
        nobusyq: f,
        nobusyg: g,
    };
    let cpu_counters = CpuCounters {
        yld_count: a,
        array_exp: b,
        sched_count: c,
        sched_goidle: d,
        ttwu_count: e,
        ttwu_local: f,
        rq_cpu_time: u64::from(g) << 9,
        run_delay: u64::from(h) << 31,
        pcount: 7,
    };
    let domain_counters = DomainCounters {
        busy: balance(h),
        idle: balance(g),
        newidle: balance(f),
        moves: Moves {
            active: [a, b, c],
            exec: [d, e, f],
            fork: [g, h, a],
            ttwu_wake_remote: b,
            ttwu_move_affine: c,
            ttwu_move_balance: d,
        },
    };
    let timestamp = u64::from(a) << 3;
    [
        UserRecord::SchedstatCpu(SchedstatCpu {
            timestamp,
            cpu: b,
            version,
            counters: if known {
                Schedstat::Known(cpu_counters)
            } else {
                Schedstat::Other(other)
            },
        }),
        UserRecord::SchedstatDomain(SchedstatDomain {
            timestamp,
            cpu: b,
            version,
            domain: 3,
            counters: if known {
                Schedstat::Known(domain_counters)
            } else {
                Schedstat::Other(other)
            },
        }),
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

/// Checks that decoding the encoded record returns the same record, and that decoding a prefix does not panic.
fn assert_round_trip(record: UserRecord<'_>, endian: Endian) {
    let bytes = body(&record, endian);
    let kind = record.kind();
    assert_eq!(decode(kind, &bytes, endian), Some(record));
    for end in 0..bytes.len() {
        drop(decode(kind, &bytes[..end], endian));
    }
}

/// Records with numeric fields, taken from `n` and `m`. `has_time` and `has_last` determine whether fields exist that older
/// versions of perf did not write: the time of an error, and the last fields of records.
fn numbers(n: [u64; 6], m: [u32; 6], has_time: bool, has_last: bool) -> Vec<UserRecord<'static>> {
    let [a, b, c, d, e, f] = n;
    let [kind, code, cpu, pid, tid, index] = m;
    let entry = |id| IdIndexEntry {
        id,
        index: b,
        cpu: c,
        tid: d,
        machine: has_last.then_some((e, f)),
    };
    let clock = HardwareClock {
        cycles: d,
        mask: e,
        // Any two bools.
        is_zero_valid: has_time,
        is_short: a % 2 == 0,
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
            time: has_time.then_some(b),
            message: b"overflow",
            machine: (has_time && has_last).then_some((code, index)),
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
            clock: has_last.then_some(clock),
        }),
    ]
}

proptest! {
    #[test]
    fn numeric_records_round_trip(
        n in any::<[u64; 6]>(), m in any::<[u32; 6]>(), has_time in any::<bool>(), has_last in any::<bool>(),
        endian in endians(),
    ) {
        for record in numbers(n, m, has_time, has_last) {
            assert_round_trip(record, endian);
        }
    }

    #[test]
    fn schedstat_records_round_trip(
        version in 13_u16..20, words in any::<[u32; 8]>(), other in vec(any::<u8>(), 0..60),
        endian in endians(),
    ) {
        for record in schedstat(version, words, &other) {
            assert_round_trip(record, endian);
        }
    }

    #[test]
    fn records_of_names_data_and_maps_round_trip(
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
            assert_round_trip(record, endian);
        }
    }
}

/// Version 15 has the counters of an idle CPU before those of a busy one, later versions after them. Version 17 has more
/// counters than the others, whose records are padded to the same size. The value of each counter is its position, from 1.
#[test]
fn order_and_number_of_domain_counters_depend_on_the_version() {
    for (version, count, first_busy, first_idle) in
        [(15_u16, 36, 9, 1), (16, 36, 1, 9), (17, 45, 1, 12)]
    {
        let mut bytes = Vec::new();
        let mut to = Encoder::new(&mut bytes, Endian::Little);
        let (timestamp, cpu, domain_number) = (5, 2, 1);
        to.u64(timestamp);
        to.u32(cpu);
        to.u16(version);
        to.u16(domain_number);
        (1..=count).for_each(|counter| to.u32(counter));
        // 16 bytes were appended before the counters; the body of a record has 200 bytes.
        to.zeros(200 - 16 - count as usize * 4);
        let decoded = decode(RecordKind::SCHEDSTAT_DOMAIN, &bytes, Endian::Little);
        let Some(UserRecord::SchedstatDomain(domain)) = decoded else {
            panic!("not a domain: {decoded:?}");
        };
        let Schedstat::Known(counters) = domain.counters else {
            panic!("version {version} is known");
        };
        assert_eq!(
            (counters.busy.count, counters.idle.count),
            (first_busy, first_idle)
        );
        assert_eq!(counters.moves.ttwu_move_balance, count);
        let words: Vec<u32> = (1..=count).collect();
        assert_eq!(counters.in_line_order(version), words);
        assert_eq!(
            body(&UserRecord::SchedstatDomain(domain), Endian::Little),
            bytes
        );
    }
}

/// Bytes as written by perf 6.1: after four bytes of padding, the words of the mask are unaligned.
#[test]
fn a_mask_of_64_bit_words_is_decoded() {
    let bytes = [
        1, 0, 2, 0, 8, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    ];
    let decoded = decode(RecordKind::CPU_MAP, &bytes, Endian::Little);
    let Some(UserRecord::CpuMap(map)) = decoded else {
        panic!("not a map: {decoded:?}");
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

/// A name or message at the end of a record is padded to a multiple of eight bytes, not to the size of its field.
#[test]
fn short_messages_and_names_are_decoded_and_encoded() {
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
        let decoded = decode(RecordKind::AUXTRACE_ERROR, &bytes, Endian::Little);
        assert_eq!(decoded.as_ref(), Some(&error));
        assert_eq!(body(&error, Endian::Little), bytes);
    }
    let name = UserRecord::EventType(EventTypeName {
        event_id: 0x1234,
        name: b"sched_switch",
    });
    let bytes = b"\x34\x12\0\0\0\0\0\0sched_switch\0\0\0\0";
    let decoded = decode(RecordKind::HEADER_EVENT_TYPE, bytes, Endian::Little);
    assert_eq!(decoded.as_ref(), Some(&name));
    assert_eq!(body(&name, Endian::Little), bytes);
}
