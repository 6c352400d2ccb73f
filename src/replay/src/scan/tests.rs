//! Scans of a file in chunks of several sizes, on one and on several threads, give the same results as one serial scan of the
//! whole file.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_perfdata::PerfData;
use rperf_testkit::{FileAttr, PerfFile};
use rperf_wire::RecordKind;

use super::chunk::ChunkScanner;
use super::{Scan, scan_chunks};
use crate::events::EventTable;
use crate::prefetch::BytesRead;
use crate::{Error, Rounds};

/// TID, TIME, READ and IDENTIFIER of `enum perf_event_sample_format`.
const SAMPLE_TYPE: u64 = (1 << 1) | (1 << 2) | (1 << 4) | (1 << 16);
const WITHOUT_VALUES: u64 = SAMPLE_TYPE & !(1 << 4);
/// RAW: any bytes at the end of a sample.
const RAW: u64 = 1 << 10;
// Record types of `enum perf_event_type` and `enum perf_user_event_type`.
const LOST: u32 = 2;
const FINISHED_ROUND: u32 = 68;
const AUXTRACE: u32 = 71;
const THREAD_MAP: u32 = 73;

/// A record of a random recording. A time is relative to 100 times the number of the record. `None`, and a time that would be
/// negative, are encoded as 0, which means that a record has no time.
#[derive(Debug, Clone)]
enum Item {
    Sample {
        id: u64,
        time: Option<i64>,
        /// Number of 8-byte words of raw data.
        raw: usize,
    },
    Comm {
        tid: u32,
        time: Option<i64>,
    },
    /// A LOST record with this number of lost records.
    Lost(u64),
    Round,
    ThreadMap,
    /// This number of 8-byte words of trace data that imitates records.
    Trace(usize),
}

fn time() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        6 => (-300..300_i64).prop_map(Some),
        1 => (-100_000..100_000_i64).prop_map(Some),
        1 => Just(None),
    ]
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        8 => (0..4_u64, time(), 0..40_usize).prop_map(|(id, time, raw)| Item::Sample { id, time, raw }),
        2 => (1..5_u32, time()).prop_map(|(tid, time)| Item::Comm { tid, time }),
        1 => (0..9_u64).prop_map(Item::Lost),
        2 => Just(Item::Round),
        1 => Just(Item::ThreadMap),
        1 => (0..60_usize).prop_map(Item::Trace),
    ]
}

/// Records, and how many bytes are missing at the end of the file.
fn recording() -> impl Strategy<Value = (Vec<Item>, usize)> {
    let items = proptest::collection::vec(item(), 1..120);
    (items, prop_oneof![3 => Just(0), 1 => 1..60_usize])
}

fn encode(items: &[Item]) -> Vec<u8> {
    let mut file = PerfFile::new();
    let first = FileAttr {
        sample_type: SAMPLE_TYPE | RAW,
        flags: FileAttr::SAMPLE_ID_ALL,
        ..FileAttr::default()
    };
    let second = FileAttr {
        sample_type: WITHOUT_VALUES | RAW,
        ..first
    };
    file.event(&first, &[1]).event(&second, &[2]);
    // Bytes that look like consecutive records.
    let imitated: Vec<u8> = (0..40).flat_map(|_| imitation()).collect();
    for (number, item) in (1..).zip(items) {
        let at = |time: &Option<i64>| {
            time.map_or(0, |time| number * 100 + time)
                .max(0)
                .cast_unsigned()
        };
        match item {
            Item::Sample { id, time, raw } => {
                let body = file.bytes().u64(*id).u32(7).u32(7).u64(at(time));
                let body = match id {
                    // The second event has no counter values. The other ids are of the first event or unknown.
                    2 => body,
                    _ => body.u64(number.cast_unsigned()),
                };
                let size = u32::try_from(*raw * 8 + 4).unwrap();
                let content = &imitated[..*raw * 8];
                file.record(
                    PerfFile::SAMPLE,
                    PerfFile::USER,
                    body.u32(size).raw(content).raw([0; 4]).done(),
                );
            }
            Item::Comm { tid, time } => {
                let body = file.bytes().u32(*tid).u32(*tid).raw("program\0");
                let body = body.u32(*tid).u32(*tid).u64(at(time)).u64(2);
                file.record(PerfFile::COMM, 0, body.done());
            }
            Item::Lost(count) => {
                let body = file.bytes().u64(1).u64(*count).u32(7).u32(7);
                let body = body.u64(at(&Some(0))).u64(2);
                file.record(LOST, 0, body.done());
            }
            Item::Round => {
                file.record(FINISHED_ROUND, 0, []);
            }
            Item::ThreadMap => {
                let body = file.bytes().u64(0);
                file.record(THREAD_MAP, 0, body.done());
            }
            Item::Trace(words) => {
                let size = *words as u64 * 8;
                let body = file.bytes().u64(size).raw([0; 32]);
                file.record(AUXTRACE, 0, body.done());
                file.records(&imitated[..*words * 8]);
            }
        }
    }
    file.finish()
}

/// A LOST record, as a part of trace data and of raw data of samples.
fn imitation() -> Vec<u8> {
    let file = PerfFile::new();
    file.bytes().u32(LOST).u16(0).u16(24).u64(1).u64(1).done()
}

fn scan_with(data: &PerfData<'_>, threads: usize, chunk_size: u64) -> Result<Scan, Error> {
    let events = EventTable::new(data.endian(), data.events());
    let bytes_read = BytesRead::default();
    let scanner = ChunkScanner::new(data, &events, &bytes_read);
    scan_chunks(&scanner, NonZeroUsize::new(threads).unwrap(), chunk_size)
}

/// The results of a scan, except for the slices (ranges of whole records), which depend on the size of the chunks.
fn results(scan: &Scan) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        scan.world,
        scan.diagnostics,
        scan.samples,
        scan.modes,
        scan.rounds,
        scan.timeless,
        scan.shares,
        scan.deferred
    )
}

/// Returns the number of late records (out of order), and for each record without a time its position and the time by which it
/// is ordered, from a serial pass. [`Rounds::add_record`] gives such a record the flush limit: the time up to which earlier
/// rounds were flushed.
fn oracle(data: &PerfData<'_>) -> (u64, Vec<(u64, u64)>) {
    let events = EventTable::new(data.endian(), data.events());
    let mut rounds = Rounds::new();
    let mut limits = Vec::new();
    for record in data.records().map_while(Result::ok) {
        let time = match record.raw.kind {
            RecordKind::SAMPLE => match events.sample_head(record.raw.body) {
                Some(head) => head.time,
                None => continue,
            },
            RecordKind::FINISHED_ROUND => {
                rounds.finish_round();
                continue;
            }
            _ => events.record_time(&record.raw),
        };
        let order = rounds.add_record(time, record.position);
        if time.is_none() {
            limits.push((record.position, order.time));
        }
    }
    (rounds.late(), limits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_parallel_scan_matches_a_serial_one((items, missing) in recording()) {
        let file = encode(&items);
        let file = &file[..file.len() - missing];
        let Ok(data) = PerfData::parse(file) else {
            return Ok(());
        };
        // One chunk has the whole file.
        let serial = scan_with(&data, 1, 1 << 40).unwrap();
        let (late, limits) = oracle(&data);
        prop_assert_eq!(serial.diagnostics.out_of_order, late);
        for (position, limit) in limits {
            prop_assert_eq!(serial.limit(position), limit, "at {}", position);
        }
        for size in [24, 200, 4096] {
            let slices: Vec<_> = [1, 3].map(|threads| {
                let scan = scan_with(&data, threads, size).unwrap();
                assert_eq!(results(&scan), results(&serial), "{threads} threads, chunks of {size}");
                scan.slices
            }).into();
            prop_assert_eq!(&slices[0], &slices[1]);
            // Each slice begins where the one before it ends.
            let ends = slices[0].iter().map(|slice| slice.end);
            let starts = slices[0].iter().skip(1).map(|slice| slice.start);
            prop_assert!(starts.eq(ends.take(slices[0].len().saturating_sub(1))));
        }
    }
}

#[test]
fn boundaries_are_found_in_recordings_and_not_in_noise() {
    let sample = |_| Item::Sample {
        id: 2,
        time: Some(0),
        raw: 12,
    };
    let items: Vec<Item> = (0..200).map(sample).collect();
    let file = encode(&items);
    let data = PerfData::parse(&file).unwrap();
    let events = EventTable::new(data.endian(), data.events());
    let bytes_read = BytesRead::default();
    let scanner = ChunkScanner::new(&data, &events, &bytes_read);
    let boundaries: Vec<u64> = data
        .records()
        .map(|record| record.unwrap().position)
        .collect();
    let start = data.data_offset();
    // The raw data of samples imitates records, but not at multiples of 8 bytes, where records begin.
    let mut correct = 0;
    for from in start..start + 8000 {
        let next = boundaries
            .iter()
            .copied()
            .find(|position| *position >= from);
        correct += usize::from(scanner.first_record(from) == next);
    }
    assert_eq!(correct, 8000);
    // Noise after one record, more than the 64 KiB that are searched. The file has the same header and events as the one above,
    // so `start` and `events` are valid for it, too.
    let mut file = encode(&[Item::Sample {
        id: 2,
        time: None,
        raw: 0,
    }]);
    file.extend([0xa5; 70_000]);
    let data_size = file.len() as u64 - start;
    // The header's data size is at offset 48.
    file[48..56].copy_from_slice(&data_size.to_le_bytes());
    let data = PerfData::parse(&file).unwrap();
    assert_eq!(data.data().len() as u64, data_size);
    let scanner = ChunkScanner::new(&data, &events, &bytes_read);
    // From within the only record.
    assert_eq!(scanner.first_record(start + 8), None);
}
