//! Attrs and records round-trip, truncated records are errors, and decoding arbitrary bytes does not panic.

use proptest::prelude::*;
use rperf_wire::{
    Attr, AttrFlags, Aux, AuxOutputHwId, BpfEvent, BranchSampleType, CallchainDeferred, Cgroup,
    Comm, Encoder, Endian, EventType, ItraceStart, Ksymbol, Lost, LostSamples, Misc, Mmap, Mmap2,
    MmapId, Namespace, Namespaces, RawRecord, Read, ReadFormat, Record, RecordHeader, RecordKind,
    SampleId, SampleIdLayout, SampleType, Switch, Task, TextPoke, Throttle, U64s, UserRecord,
};

fn endians() -> impl Strategy<Value = Endian> {
    prop_oneof![Just(Endian::Little), Just(Endian::Big)]
}

/// Names as written by the kernel: any bytes but NUL.
fn names() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1_u8.., 0..40)
}

fn attrs() -> impl Strategy<Value = Attr> {
    let words = prop::array::uniform12(any::<u64>());
    let words32 = prop::array::uniform8(any::<u32>());
    (words, words32, any::<u16>()).prop_map(|(words, words32, sample_max_stack)| {
        let [
            config,
            sample_period,
            sample_type,
            read_format,
            flags,
            config1,
            config2,
            branch,
            sample_regs_user,
            sample_regs_intr,
            sig_data,
            config3,
        ] = words;
        let [
            kind,
            wakeup,
            bp_type,
            sample_stack_user,
            clockid,
            aux_watermark,
            aux_sample_size,
            aux_action,
        ] = words32;
        Attr {
            kind: EventType(kind),
            config,
            sample_period,
            sample_type: SampleType(sample_type),
            read_format: ReadFormat(read_format),
            flags: AttrFlags(flags),
            wakeup,
            bp_type,
            config1,
            config2,
            branch_sample_type: BranchSampleType(branch),
            sample_regs_user,
            sample_stack_user,
            clockid: clockid.cast_signed(),
            sample_regs_intr,
            aux_watermark,
            sample_max_stack,
            aux_sample_size,
            aux_action,
            sig_data,
            // Often 0: `Attr::encode` omits the last fields if they are 0.
            config3: if config3 % 2 == 0 { 0 } else { config3 },
            config4: if config3 % 3 == 0 { config3 } else { 0 },
            unknown: if config3 % 5 == 0 {
                sig_data.to_le_bytes().to_vec()
            } else {
                Vec::new()
            },
        }
    })
}

/// Records of the kernel types other than SAMPLE, READ and CALLCHAIN_DEFERRED, with numbers from `n`, build-id and tag from
/// `bytes`, and texts from `name`.
fn records<'a>(n: &[u64; 8], bytes: [u8; 20], name: &'a [u8]) -> Vec<Record<'a>> {
    let [a, b, c, d, e, f, g, h] = *n;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "any number is a valid result"
    )]
    let as_u32 = |number: u64| number as u32;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "any number is a valid result"
    )]
    let as_u16 = |number: u64| number as u16;
    let mmap = Mmap {
        pid: as_u32(a).cast_signed(),
        tid: as_u32(b),
        start: c,
        len: d,
        pgoff: e,
        filename: name,
    };
    let mmap2 = |id| Mmap2 {
        mmap,
        id,
        prot: as_u32(a >> 32),
        flags: as_u32(b >> 32),
    };
    let inode = MmapId::Inode {
        major: as_u32(f),
        minor: as_u32(f >> 32),
        inode: g,
        generation: h,
    };
    let build_id_size = u8::try_from(1 + g % 20).unwrap_or(20);
    // Zeros follow a build-id. Bytes 1 to 3 must not all be 0: a build-id of 5 to 15 bytes would be taken for device and inode.
    let mut build_id = bytes;
    build_id[1] |= 1;
    build_id[usize::from(build_id_size)..].fill(0);
    let task = Task {
        pid: as_u32(a),
        ppid: as_u32(b),
        tid: as_u32(c),
        ptid: as_u32(d),
        time: e,
    };
    let throttle = Throttle {
        time: a,
        id: b,
        stream_id: c,
    };
    let (pid, tid) = (as_u32(g), as_u32(h));
    let [.., t0, t1, t2, t3, t4, t5, t6, t7] = bytes;
    let links = (0..a % 9).map(|dev| Namespace {
        dev,
        inode: dev ^ b,
    });
    vec![
        Record::Mmap(mmap),
        Record::Mmap2(mmap2(inode)),
        Record::Mmap2(mmap2(MmapId::BuildId {
            size: build_id_size,
            bytes: build_id,
        })),
        Record::Comm(Comm {
            pid,
            tid,
            comm: name,
        }),
        Record::Fork(task),
        Record::Exit(task),
        Record::Lost(Lost { id: a, lost: b }),
        Record::LostSamples(LostSamples { lost: c }),
        Record::Throttle(throttle),
        Record::Unthrottle(throttle),
        Record::Switch(Switch { next_prev: None }),
        Record::Switch(Switch {
            next_prev: Some((pid, tid)),
        }),
        Record::Ksymbol(Ksymbol {
            addr: a,
            len: as_u32(b),
            ksym_type: as_u16(c),
            flags: as_u16(d),
            name,
        }),
        Record::BpfEvent(BpfEvent {
            event_type: as_u16(a),
            flags: as_u16(b),
            id: as_u32(c),
            tag: [t0, t1, t2, t3, t4, t5, t6, t7],
        }),
        Record::Namespaces(Namespaces {
            pid,
            tid,
            links: links.collect(),
        }),
        Record::Cgroup(Cgroup { id: a, path: name }),
        Record::Aux(Aux {
            offset: a,
            size: b,
            flags: c,
        }),
        Record::ItraceStart(ItraceStart { pid, tid }),
        Record::AuxOutputHwId(AuxOutputHwId { hw_id: d }),
        Record::TextPoke(TextPoke {
            addr: a,
            old: name,
            new: &name[..name.len() / 2],
        }),
    ]
}

/// Concatenates header, body and trailer.
fn encode(record: &Record<'_>, layout: SampleIdLayout, id: &SampleId, endian: Endian) -> Vec<u8> {
    let mut body = Vec::new();
    let mut to = Encoder::new(&mut body, endian);
    record.encode_body(&mut to);
    layout.encode(id, &mut to);
    let (kind, misc) = record.kind_and_misc();
    let size = u16::try_from(RecordHeader::SIZE + body.len()).unwrap();
    let mut bytes = Vec::new();
    RecordHeader { kind, misc, size }.encode(&mut Encoder::new(&mut bytes, endian));
    bytes.extend_from_slice(&body);
    bytes
}

/// The kernel may leave the bit for build-ids set in records that have device and inode.
#[test]
fn inodes_and_build_ids_are_distinguished_despite_the_misc_bit() {
    let build_id = |size: u8| {
        let mut bytes = [0xab; 20];
        bytes[usize::from(size)..].fill(0);
        MmapId::BuildId { size, bytes }
    };
    let inode = |major, minor| MmapId::Inode {
        major,
        minor,
        inode: 0x4_f8d3,
        generation: 0,
    };
    let identities = [
        // Files on a virtio disk, an NVMe disk, a SCSI disk, tmpfs and a RAM disk.
        inode(254, 0),
        inode(259, 0x1_0203),
        inode(8, 17),
        inode(0, 25),
        inode(1, 0xab),
        build_id(20),
        build_id(8),
        build_id(2),
    ];
    for id in identities {
        let record = Record::Mmap2(Mmap2 {
            mmap: Mmap {
                pid: 1,
                tid: 1,
                start: 0x1000,
                len: 0x1000,
                pgoff: 0,
                filename: b"/usr/bin/true",
            },
            id,
            prot: 5,
            flags: 2,
        });
        let layout = SampleIdLayout::new(SampleType(0));
        for endian in [Endian::Little, Endian::Big] {
            let bytes = encode(&record, layout, &SampleId::default(), endian);
            let (raw, _) = RawRecord::split(&bytes, endian).unwrap();
            let misc = Misc::MMAP_BUILD_ID;
            let marked = RawRecord { misc, ..raw };
            assert_eq!(
                Record::decode(&marked, endian).as_ref(),
                Ok(&record),
                "{id:?}"
            );
        }
    }
}

proptest! {
    #[test]
    fn attrs_round_trip(attr in attrs(), endian in endians()) {
        let bytes = attr.encode(endian);
        prop_assert_eq!(Attr::decode(&bytes, endian), Ok(attr));
        // A shorter attr is valid, as from an older kernel, down to the size of the first version.
        for end in 0..bytes.len() {
            let decoded = Attr::decode(&bytes[..end], endian);
            prop_assert_eq!(decoded.is_ok(), end >= Attr::SIZE_VER0);
        }
    }

    #[test]
    fn records_round_trip_with_their_sample_ids(
        numbers in prop::array::uniform8(any::<u64>()),
        bytes in prop::array::uniform20(any::<u8>()),
        name in names(),
        sample_type in any::<u64>().prop_map(SampleType),
        endian in endians(),
    ) {
        let layout = SampleIdLayout::new(sample_type);
        let [time, id, stream, ..] = numbers;
        let has = |bit| sample_type.contains(bit);
        let trailer = SampleId {
            pid_tid: has(SampleType::TID).then_some((7, 8)),
            time: has(SampleType::TIME).then_some(time),
            id: (has(SampleType::ID) || has(SampleType::IDENTIFIER)).then_some(id),
            stream_id: has(SampleType::STREAM_ID).then_some(stream),
            cpu: has(SampleType::CPU).then_some(9),
        };
        for record in records(&numbers, bytes, &name) {
            let bytes = encode(&record, layout, &trailer, endian);
            prop_assert_eq!(bytes.len() % 8, 0, "records are padded: {:?}", record);
            let (raw, size) = RawRecord::split(&bytes, endian).unwrap();
            prop_assert_eq!(size, bytes.len());
            let (body, sample_id) = layout.split(raw.body, endian);
            prop_assert_eq!(sample_id, trailer);
            prop_assert_eq!(layout.time(raw.body, endian), trailer.time);
            let without_trailer = RawRecord { body, ..raw };
            // With the trailer: bytes after the fields are ignored.
            prop_assert_eq!(Record::decode(&raw, endian), Ok(record.clone()));
            prop_assert_eq!(Record::decode(&without_trailer, endian), Ok(record));
        }
    }

    /// READ and CALLCHAIN_DEFERRED: their words reach to the end of the body, so that no trailer can follow here.
    #[test]
    fn records_of_words_round_trip(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        cookie in any::<u64>(),
        endian in endians(),
    ) {
        let words = U64s::new(&bytes[..bytes.len() / 8 * 8], endian);
        let (pid, tid) = (3, 4);
        for record in [
            Record::Read(Read { pid, tid, words }),
            Record::CallchainDeferred(CallchainDeferred { cookie, ips: words }),
        ] {
            let (kind, misc) = record.kind_and_misc();
            let mut body = Vec::new();
            record.encode_body(&mut Encoder::new(&mut body, endian));
            let raw = RawRecord { kind, misc, body: &body };
            prop_assert_eq!(Record::decode(&raw, endian), Ok(record));
        }
    }

    /// All names are empty: a truncated name is a valid shorter name.
    #[test]
    fn truncated_records_are_errors(
        numbers in prop::array::uniform8(any::<u64>()),
        bytes in prop::array::uniform20(any::<u8>()),
        endian in endians(),
    ) {
        for record in records(&numbers, bytes, b"") {
            let (kind, misc) = record.kind_and_misc();
            let mut body = Vec::new();
            record.encode_body(&mut Encoder::new(&mut body, endian));
            // Bytes at the end that may be missing: the padded empty name, or padding.
            let optional = match record {
                Record::Mmap(_) | Record::Mmap2(_) | Record::Comm(_) | Record::Ksymbol(_) | Record::Cgroup(_) => 8,
                Record::TextPoke(_) => 4,
                _ => 0,
            };
            for end in 0..body.len() - optional {
                let raw = RawRecord { kind, misc, body: &body[..end] };
                prop_assert!(Record::decode(&raw, endian).is_err(), "{:?} truncated at {}", record, end);
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_err(
        // The types of the kernel, those of perf (from 64), and unknown ones.
        kind in 0_u32..90,
        misc in any::<u16>(),
        body in prop::collection::vec(any::<u8>(), 0..200),
        sample_type in any::<u64>(),
        endian in endians(),
    ) {
        let raw = RawRecord { kind: RecordKind(kind), misc: Misc(misc), body: &body };
        // The results do not matter: any bytes may happen to be a record.
        drop(Record::decode(&raw, endian));
        drop(UserRecord::decode(&raw, endian));
        let layout = SampleIdLayout::new(SampleType(sample_type));
        let (rest, _) = layout.split(&body, endian);
        prop_assert!(rest.len() == body.len() || rest.len() + layout.size() == body.len());
    }
}
