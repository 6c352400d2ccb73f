//! Non-sample records are delivered in order with the samples. The `World` (the processes and mappings at that time), which a
//! renderer also gets, is not used here.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_perfdata::PerfData;
use rperf_replay::{FoldControl, NonSampleRecord, Render, Replay, Sample, World};
use rperf_wire::RecordKind;

use crate::oracle::{events, record};
use crate::stream::{piped, stream};

const KINDS: [RecordKind; 6] = [
    RecordKind::MMAP,
    RecordKind::MMAP2,
    RecordKind::COMM,
    RecordKind::FORK,
    RecordKind::EXIT,
    RecordKind::KSYMBOL,
];

/// Renders the positions in the file of samples, and of the non-sample records of the types in the list.
struct Places(Vec<RecordKind>);

impl Render for Places {
    type Out = Vec<u64>;
    type Scratch = ();

    fn render(&self, _: &World, sample: &Sample<'_>, _: &mut (), out: &mut Vec<u64>) {
        out.push(sample.order.position);
    }

    fn wanted(&self) -> &[RecordKind] {
        &self.0
    }

    fn record(&self, _: &World, record: &NonSampleRecord<'_>, _: &mut (), out: &mut Vec<u64>) {
        assert!(self.0.contains(&record.raw.kind));
        // Only the kernel's records have a trailer; those of the user types are perf's own.
        let is_user = record.raw.kind.is_user();
        assert_eq!(record.id.pid_tid.is_none(), is_user, "{record:?}");
        out.push(record.order.position);
    }
}

/// What [`Replay::ordered`] delivers; it renders blocks of records and passes on their outputs one by one.
fn ordered(file: &[u8], places: &Places, threads: usize) -> Vec<u64> {
    let data = PerfData::parse(file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let threads = NonZeroUsize::new(threads).expect("not zero");
    let mut seen = Vec::new();
    let mut take = |block: &mut Vec<u64>| {
        seen.append(block);
        FoldControl::Continue
    };
    replay
        .ordered(threads, places, &mut take)
        .expect("enough memory");
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn non_samples_have_the_order_of_a_serial_replay(events in events(), read_size in 1_usize..3000) {
        let (file, delivered) = record(&events);
        let expected: Vec<u64> = delivered.iter().map(|(position, _)| *position).collect();
        let places = Places(KINDS.to_vec());
        prop_assert_eq!(&ordered(&file, &places, 1), &expected);
        prop_assert_eq!(&ordered(&file, &places, 2), &expected);
        // Positions in the pipe are lower than those in the file by `shift`.
        let (bytes, shift) = piped(&file);
        let fails = false;
        let mut stream = stream(&bytes, read_size, fails).with_records(&KINDS);
        let mut one_worker = [()];
        let mut seen = Vec::new();
        while stream.advance().expect("not compressed") {
            let mut take = |block: &mut Vec<u64>| {
                seen.extend(block.iter().map(|position| position + shift));
                FoldControl::Continue
            };
            stream.deliver(&places, &mut one_worker, &mut take);
        }
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn records_are_in_file_order_if_finished_rounds_are_wanted(events in events()) {
        // `Replay::ordered` does not sort if FINISHED_ROUND is wanted. Together with samples, the wanted types are all types in
        // the file, so every record is rendered.
        let (file, delivered) = record(&events);
        let mut kinds = KINDS.to_vec();
        kinds.push(RecordKind::FINISHED_ROUND);
        let data = PerfData::parse(&file).expect("a valid file");
        let records = data.records().map(|record| record.expect("a valid record").position);
        let expected: Vec<u64> = records.collect();
        // `delivered` has no FINISHED_ROUND records, the file may have some.
        prop_assert!(expected.len() >= delivered.len());
        prop_assert_eq!(ordered(&file, &Places(kinds), 2), expected);
    }
}
