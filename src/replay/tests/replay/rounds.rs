//! A recording with so many rounds (parts that end with FINISHED_ROUND) that the replay keeps the positions of only some of them.

use std::num::NonZeroUsize;

use rperf_perfdata::PerfData;
use rperf_replay::{FoldControl, Order, Replay, Rounds};
use rperf_wire::{Endian, SampleRecord, SampleType};

use crate::USER;
use crate::file::{FileBuilder, attr};
use crate::oracle::{Look, Seen};

/// The time of a sample of `round`: one sample in twenty has no time (0), the first sample of every hundredth round has the time
/// of a much earlier round, and the others are unordered as in rings that are drained one after the other. `count` is the number
/// of samples before this one.
fn time(round: u64, sample: u64, count: u64) -> u64 {
    match (count % 20, sample) {
        (0, _) => 0,
        (_, 0) if round.is_multiple_of(100) => round * 50,
        _ => round * 100 + (sample * 37) % 90,
    }
}

/// A recording of 2,999 rounds, and the orders (time and file position) of its samples, ascending. A sample without a time has
/// the flush limit, the time up to which perf would have delivered records, as its time.
fn many_rounds() -> (Vec<u8>, Vec<Order>) {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    let mut rounds = Rounds::new();
    let mut expected = Vec::new();
    for round in 1..3000 {
        for sample in 0..2 + round % 7 {
            let time = time(round, sample, expected.len() as u64);
            let wire = SampleRecord {
                ip: Some(1),
                pid_tid: Some((1, 1)),
                time: Some(time),
                ..SampleRecord::default()
            };
            // A sample of event 0, the only one.
            let position = file.sample(0, USER, &wire);
            expected.push(rounds.add_record((time > 0).then_some(time), position));
        }
        file.round();
        rounds.finish_round();
    }
    // The first sample of every hundredth round is late: its time is before the flush limit when it is read.
    assert!(rounds.late() > 0);
    expected.sort();
    (file.finish(), expected)
}

#[test]
fn records_are_in_time_order_if_only_some_rounds_are_stored() {
    let (file, expected) = many_rounds();
    let data = PerfData::parse(&file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let mut seen = Vec::new();
    // Gets the output of `Look`, block by block: a `Seen` for each sample, a tuple that begins with the sample's file position.
    let mut take = |block: &mut Vec<Seen>| {
        seen.extend(block.iter().map(|(position, ..)| *position));
        FoldControl::Continue
    };
    let threads = NonZeroUsize::new(2).expect("not zero");
    replay.ordered(threads, &Look, &mut take).expect("threads");
    let expected: Vec<u64> = expected.iter().map(|order| order.position).collect();
    assert_eq!(seen, expected);
}
