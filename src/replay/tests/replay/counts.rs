//! The counts of a replay, the event that a record belongs to, and the mappings of the kernel and of modules.

use std::num::NonZeroUsize;

use rperf_perfdata::PerfData;
use rperf_replay::{EventIndex, Fold, Machine, Replay, Sample, World};
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_wire::{
    Comm, CpuMode, Endian, Lost, LostSamples, Misc, Mmap, Record, RecordKind, SampleId, SampleType,
};

use crate::file::{FileBuilder, attr};
use crate::{KERNEL, USER};

/// The trailer of a record of thread 5 at `time`.
fn at(time: u64) -> SampleId {
    SampleId {
        pid_tid: Some((5, 5)),
        time: Some(time),
        ..SampleId::default()
    }
}

fn sample(time: u64, id: u64) -> rperf_wire::SampleRecord<'static> {
    rperf_wire::SampleRecord {
        ip: Some(0x1000),
        pid_tid: Some((5, 5)),
        time: Some(time),
        id: Some(id),
        period: Some(3),
        ..rperf_wire::SampleRecord::default()
    }
}

/// A recording with LOST and LOST_SAMPLES records, and with samples that are late.
fn with_losses() -> Vec<u8> {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    for round in 1..=3 {
        for offset in 0..10 {
            file.sample(0, USER, &sample(round * 100 + offset, 1));
        }
        file.round();
    }
    // The end of the third round delivered the records up to 209, the highest time of the second: of the next samples, all but
    // 301 are late.
    for time in [150, 204, 205, 301] {
        file.sample(0, USER, &sample(time, 1));
    }
    for (id, lost) in [(1, 40), (1, 2)] {
        let lost = Record::Lost(Lost { id, lost });
        file.record(0, Misc(0), &lost, &at(310));
    }
    let lost = Record::LostSamples(LostSamples { lost: 17 });
    file.record(0, Misc(0), &lost, &at(311));
    file.finish()
}

#[test]
fn losses_and_late_records_are_counted_as_perf_counts_them() {
    let file = with_losses();
    let data = PerfData::parse(&file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let counted = replay.diagnostics();
    assert_eq!(
        (
            counted.lost_chunks,
            counted.lost_records,
            counted.lost_samples
        ),
        (2, 42, 17)
    );
    // 34 samples, 3 FINISHED_ROUND, 2 LOST and 1 LOST_SAMPLES.
    assert_eq!((counted.out_of_order, counted.records), (3, 40));
    assert_eq!(counted.count(RecordKind::SAMPLE), 34);
    let Some(perf) = real_perf() else {
        return skip(
            "losses_and_late_records_are_counted_as_perf_counts_them",
            "there is no perf",
        );
    };
    let scratch = Scratch::new();
    let path = scratch.write("perf.data", &file).expect("written");
    let path = path.to_str().expect("a plain path");
    let run = Run::new(&perf).args(["report", "-f", "-i", path, "--stdio"]);
    let outcome = run.finish().expect("perf runs");
    for message in [
        format!(
            "Processed {} events and lost {} chunks",
            counted.records, counted.lost_chunks
        ),
        format!("{} out of order events", counted.out_of_order),
    ] {
        assert!(
            outcome.stderr.contains(&message),
            "{message}: {}",
            outcome.stderr
        );
    }
    let message = format!("# Total Lost Samples: {}", counted.lost_samples);
    assert!(outcome.stdout.contains(&message), "{}", outcome.stdout);
}

/// Event, time, period and CPU of every sample.
#[derive(Default)]
struct List(Vec<(u32, u64, u64, u32)>);

impl Fold for List {
    fn sample(&mut self, _: &World, sample: &Sample<'_>) {
        let EventIndex(event) = sample.event;
        self.0
            .push((event, sample.order.time, sample.period, sample.cpu));
    }

    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

#[test]
fn events_of_different_layouts_are_distinguished_by_id() {
    let first = SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME;
    let second = first | SampleType::CPU | SampleType::PERIOD;
    for endian in [Endian::Little, Endian::Big] {
        let events = [(attr(first), vec![11, 12]), (attr(second), vec![21, 22])];
        let mut file = FileBuilder::new(endian, &events);
        let trailer = |id| SampleId {
            id: Some(id),
            ..at(90)
        };
        let comm = Record::Comm(Comm {
            pid: 5,
            tid: 5,
            comm: b"second",
        });
        // The first argument is the index of an event: the trailer or the sample has the layout of this event.
        file.record(
            1,
            Misc(0),
            &comm,
            &SampleId {
                cpu: Some(1),
                ..trailer(22)
            },
        );
        file.sample(0, USER, &sample(100, 12));
        let with_cpu = rperf_wire::SampleRecord {
            cpu: Some(1),
            ..sample(101, 21)
        };
        file.sample(1, USER, &with_cpu);
        // An unknown id, and id 0, which means the first event, as in synthesized records.
        file.sample(0, USER, &sample(102, 99));
        file.sample(0, USER, &sample(103, 0));
        // Too short to contain a time; its id is 0.
        file.raw(RecordKind::SAMPLE, USER, &[0; 16]);
        let file = file.finish();
        let data = PerfData::parse(&file).expect("a valid file");
        let replay = Replay::open(&data).expect("a valid recording");
        let list = replay.fold(NonZeroUsize::MIN, List::default).0;
        let no_cpu = u32::MAX;
        // Samples of the first event record no period: they get `sample_period` of the attr, 7.
        assert_eq!(
            list,
            [(0, 100, 7, no_cpu), (1, 101, 3, 1), (0, 103, 7, no_cpu)]
        );
        let counted = replay.diagnostics();
        assert_eq!(counted.unknown_ids, 1);
        assert_eq!(counted.bad_samples.count, 1);
        // The sample that is too short is counted, the one with the unknown id is not.
        assert_eq!(replay.sample_counts(), [3, 1]);
        let world = replay.world();
        let order = |time| rperf_replay::Order {
            time,
            position: u64::MAX, // After all records of this time.
        };
        assert_eq!(world.comm(world.comm_at(5, order(90))), "second");
        assert_eq!(world.comm(world.comm_at(5, order(89))), ":5");
        assert_eq!(world.comm(world.comm_at_or_later(5, order(89))), "second");
        assert_eq!(world.comm(world.comm_at(u32::MAX, order(89))), ":-1");
    }
}

#[test]
fn kernel_and_module_mappings_are_stored() {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    let mmap = |start, pgoff, filename| {
        Record::Mmap(Mmap {
            pid: -1,
            tid: 0,
            start,
            len: 0x1000,
            pgoff,
            filename,
        })
    };
    let (text, module) = (0xffff_ffff_8100_0000, 0xffff_ffff_c000_0000);
    file.record(
        0,
        KERNEL,
        &mmap(text, text, b"[kernel.kallsyms]_text"),
        &at(0),
    );
    let path = b"/lib/modules/6.1/kernel/fs/ext4/ext4.ko";
    file.record(0, KERNEL, &mmap(module, 0, path), &at(0));
    let file = file.finish();
    let data = PerfData::parse(&file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let world = replay.world();
    let dso = |address| {
        let order = rperf_replay::Order::MAX;
        let mapping = world.lookup(Machine::Host, CpuMode::Kernel, 5, order, address);
        let mapping = world.mapping(mapping.expect("mapped"));
        assert_eq!(mapping.object_address(address), address);
        world.dso(mapping.dso)
    };
    let kernel = dso(text + 0xfff);
    assert_eq!(kernel.name, "[kernel.kallsyms]");
    assert_eq!(kernel.relocation, Some(("_text".to_owned(), text)));
    let module_dso = dso(module);
    assert_eq!(
        (module_dso.name.as_str(), module_dso.map_start),
        ("[ext4]", module)
    );
    assert_eq!(module_dso.long_name.as_bytes(), path);
    assert_eq!(
        world.lookup(
            Machine::Host,
            CpuMode::User,
            5,
            rperf_replay::Order::MAX,
            text
        ),
        None
    );
}
