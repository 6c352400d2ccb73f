//! Benchmark of pass 1 of a replay (`Replay::open`) over 1.5 GiB of small records, compared with memory bandwidth:
//! `cargo bench -p rperf-replay --bench pass1`.
//!
//! `read` sums every word of the recording, `headers` only steps from record to record, and `open` is pass 1; all run on one
//! core. The target for `open` is half the rate of `read`.

mod recordings;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rperf_perfdata::PerfData;
use rperf_replay::Replay;
use rperf_wire::{SampleRecord, SampleType};

use self::recordings::Recording;

/// Minimum size of all records in bytes.
const SIZE: usize = 3 << 29;

/// Creates a recording of samples of 40 bytes, with a FINISHED_ROUND record (the end of a round) after every 2,000.
fn recording() -> Vec<u8> {
    let fields = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::PERIOD,
    ];
    // `SIZE` is exceeded by at most a sample and an end of a round (48 bytes).
    let reserved_bytes = SIZE + 64;
    let mut recording = Recording::new(&fields, reserved_bytes);
    for number in 0.. {
        let total = recording.sample(&SampleRecord {
            ip: Some(0x1000 + number % 7),
            pid_tid: Some((7, 7)),
            time: Some(number),
            period: Some(1),
            ..SampleRecord::default()
        });
        if number % 2000 == 1999 {
            recording.round();
        }
        if total >= SIZE {
            break;
        }
    }
    recording.file()
}

fn pass_1(criterion: &mut Criterion) {
    let file = recording();
    let data = PerfData::parse(&file).expect("a valid file");
    let mut group = criterion.benchmark_group("pass 1");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    group.throughput(Throughput::Bytes(file.len() as u64));
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let words = file
                .as_chunks()
                .0
                .iter()
                .map(|word| u64::from_ne_bytes(*word));
            black_box(words.fold(0, u64::wrapping_add))
        });
    });
    group.bench_function("headers", |bencher| {
        bencher.iter(|| {
            let mut records = data.records();
            let mut count = 0_u64;
            while records.next_valid().is_some() {
                count += 1;
            }
            black_box(count)
        });
    });
    group.bench_function("open", |bencher| {
        bencher.iter(|| black_box(Replay::open(&data).is_ok()));
    });
    group.finish();
}

criterion_group!(benches, pass_1);
criterion_main!(benches);
