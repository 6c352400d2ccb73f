//! Tests: mappings have the names and kinds of objects in the World (the processes and mappings at each time), and an address is
//! looked up again after its mapping was replaced.

use rperf_replay::{Order, WorldBuilder};
use rperf_wire::{Attr, AttrFlags, SampleType};

use super::*;

const PID: u32 = 7;
const HUGETLB: u32 = 0x40000;

/// Has no build-ids, and keeps the names that were looked up.
#[derive(Default)]
struct Lookups(Vec<String>);

impl BuildIdSource for Lookups {
    fn find(&mut self, object: ObjectName<'_>) -> Option<BuildId> {
        self.0.push(object.name.to_owned());
        None
    }
}

fn mmap2(start: u64, filename: &[u8]) -> Mmap2<'_> {
    Mmap2 {
        mmap: Mmap {
            pid: PID.cast_signed(),
            tid: PID,
            start,
            len: 0x1000,
            pgoff: 0,
            filename,
        },
        id: MmapId::Inode {
            major: 0,
            minor: 0,
            inode: 1,
            generation: 0,
        },
        prot: PROT_READ | PROT_EXEC,
        flags: MAP_PRIVATE,
    }
}

/// The bytes of a record, with `PID` and `time` as its trailer.
fn bytes(misc: Misc, record: &Record<'_>, time: u64) -> Vec<u8> {
    let (kind, misc_of_record) = record.kind_and_misc();
    let mut bytes = Vec::new();
    let misc = Misc(misc.0 | misc_of_record.0);
    assert!(RecordHeader::encode_record(
        kind,
        misc,
        &mut bytes,
        Endian::NATIVE,
        |to| {
            record.encode_body(to);
            to.u32(PID);
            to.u32(PID);
            to.u64(time);
        }
    ));
    bytes
}

#[test]
fn mappings_name_the_same_objects_as_the_world_builder() {
    let high = 0x7f00_0000_0000;
    let of_user = |start, filename| (Misc::USER, mmap2(start, filename));
    let huge = Mmap2 {
        flags: MAP_PRIVATE | HUGETLB,
        ..mmap2(high, b"/hugepages/buffer")
    };
    let data = Mmap2 {
        prot: PROT_READ,
        ..mmap2(high, b"//anon")
    };
    // Each mapping with the kind of its object, and whether the object can have a build-id.
    let cases = [
        (of_user(high, b"/bin/ls"), DsoKind::User, true),
        (of_user(high, b"[vdso]"), DsoKind::Vdso, true),
        (of_user(0xf7f0_0000, b"[vdso]"), DsoKind::Vdso32, true),
        (of_user(high, b"anon_inode:[x]"), DsoKind::User, false),
        (of_user(high, b"//anon"), DsoKind::PerfMap(PID), false),
        ((Misc::USER, huge), DsoKind::PerfMap(PID), false),
        ((Misc::USER, data), DsoKind::Memory, false),
        (
            (Misc::KERNEL, mmap2(1 << 63, b"[kernel.kallsyms]_text")),
            DsoKind::Kernel,
            true,
        ),
        (
            (Misc::KERNEL, mmap2(1 << 63, b"/lib/modules/x/nf.ko")),
            DsoKind::KernelModule,
            true,
        ),
    ];
    for ((misc, mmap2), kind, has_build_id) in cases {
        let text = name_text(mmap2.mmap.filename).into_owned();
        let record = bytes(misc, &Record::Mmap2(mmap2), 5);
        let (raw, _) = RawRecord::split(&record, Endian::NATIVE).expect("a record");
        let mut builder = WorldBuilder::new(Endian::NATIVE);
        builder.push(Order::default(), &raw).expect("a mapping");
        let dso = builder.world().dsos().last().expect("an object");
        let mapping = RecordedMapping::decode(&raw, Endian::NATIVE).expect("a mapping");
        let named = mapping.object(misc).expect("an object");
        assert_eq!((&named.name, named.kind), (&dso.long_name, dso.kind));
        assert_eq!(named.kind, kind, "{text}");
        // The bits of `misc` for the build-id's record: those of the object's mappings.
        let mode = mode_of(ObjectName::of(&named));
        // Only an object that can have a build-id has a mode.
        assert_eq!(mode, Some(misc).filter(|_| has_build_id), "{text}");
    }
}

#[test]
fn objects_that_replace_others_within_a_round_are_found() {
    let attr = Attr {
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let events = [EventDesc::new(attr, vec![1])];
    let sample = |time: u64| {
        let mut bytes = Vec::new();
        RecordHeader::encode_record(
            RecordKind::SAMPLE,
            Misc::USER,
            &mut bytes,
            Endian::NATIVE,
            |to| {
                to.u64(0x5010);
                to.u32(PID);
                to.u32(PID);
                to.u64(time);
            },
        );
        bytes
    };
    let mapped = |filename, time| bytes(Misc::USER, &Record::Mmap2(mmap2(0x5000, filename)), time);
    let records = [
        mapped(b"/lib/old.so", 1),
        sample(2),
        sample(3),
        mapped(b"/lib/new.so", 4),
        sample(5),
    ]
    .concat();
    // The empty list: the recording has no build-ids of its own.
    let mut injector = BuildIdInjector::new(
        Endian::NATIVE,
        &events,
        &[],
        InjectedObjects::Hit,
        Lookups::default(),
    );
    // One round: all records are noted before the first is rewritten.
    injector.note(&records);
    injector.note_end();
    injector.rewrite(&records, &mut Vec::new());
    assert_eq!(injector.source.0, ["/lib/old.so", "/lib/new.so"]);
}
