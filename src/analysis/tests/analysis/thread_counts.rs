//! Per-thread counts from READ records.

use rperf_analysis::ThreadCounts;
use rperf_wire::{Endian, Misc, Read, Record, U64s};

use crate::recording::{CYCLES_INDEX, Recording, with_replay};

#[test]
fn counts_of_a_thread_are_summed_over_cpus() {
    for endian in [Endian::Little, Endian::Big] {
        let mut recording = Recording::new(endian);
        for (time, cpu, tid, count) in [(30, 0, 7, 5_u64), (10, 0, 8, 1), (20, 1, 7, 100)] {
            let word = match endian {
                Endian::Little => count.to_le_bytes(),
                Endian::Big => count.to_be_bytes(),
            };
            let words = U64s::new(&word, endian);
            let read = Read { pid: 7, tid, words };
            recording.record((time, cpu, tid), Misc(0), &Record::Read(read));
        }
        let file = recording.finish();
        let (counted, event) = with_replay(&file, |data, replay| {
            // `Recording` gives each record that is not a sample the id of `cycles`.
            let name = data.events()[CYCLES_INDEX].name.clone();
            (ThreadCounts::of_recording(replay), (name, CYCLES_INDEX))
        });
        assert_eq!(counted.events, [event]);
        let rows = counted.threads.iter();
        let rows: Vec<_> = rows.map(|thread| (thread.tid, &*thread.counts)).collect();
        // In the order of the threads' first records, by time.
        assert_eq!(rows, [(8, &[1][..]), (7, &[105])], "{endian:?}");
    }
}

#[test]
fn read_records_that_cannot_be_decoded_are_counted() {
    let mut recording = Recording::new(Endian::Little);
    let word = 5_u64.to_le_bytes();
    let words = U64s::new(&word, Endian::Little);
    let (pid, tid) = (7, 8);
    recording.record(
        (10, 0, tid),
        Misc(0),
        &Record::Read(Read { pid, tid, words }),
    );
    let bad_offsets = [recording.truncated_read(), recording.truncated_read()];
    let counted = with_replay(&recording.finish(), |_, replay| {
        ThreadCounts::of_recording(replay)
    });
    assert_eq!(counted.threads.len(), 1);
    let first = counted.bad.first.expect("a record");
    assert_eq!((counted.bad.count, first.offset), (2, bad_offsets[0]));
}
