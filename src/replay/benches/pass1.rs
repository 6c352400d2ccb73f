//! Pass 1 over 1.5 GB of small records beside what the memory gives: `cargo bench -p rperf-replay --bench pass1`.
//!
//! `read` sums every word of the same bytes on one core. Half of its rate is what pass 1 is to reach.

use std::hint::black_box;
use std::io::Cursor;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rperf_perfdata::{EventDesc, FeatureSet, PerfData, Writer};
use rperf_replay::Replay;
use rperf_wire::{
    Attr, AttrFlags, Encoder, Endian, EventType, Misc, RawRecord, RecordKind, Sample, SampleLayout,
    SampleType,
};

const SIZE: usize = 3 << 29;

/// Samples of 40 bytes, a round after every 2,000.
fn recording() -> Vec<u8> {
    let fields = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::PERIOD,
    ];
    let attr = Attr {
        kind: EventType::SOFTWARE,
        sample_type: fields.into_iter().fold(SampleType(0), |all, bit| all | bit),
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let layout = SampleLayout::new(&attr);
    let mut records = Vec::with_capacity(SIZE + 64);
    let mut body = Vec::new();
    for number in 0.. {
        if records.len() >= SIZE {
            break;
        }
        let sample = Sample {
            ip: Some(0x1000 + number % 7),
            pid_tid: Some((7, 7)),
            time: Some(number),
            period: Some(1),
            ..Sample::default()
        };
        body.clear();
        layout.encode(&sample, &mut Encoder::new(&mut body, Endian::NATIVE));
        push(&mut records, RecordKind::SAMPLE, &body);
        if number % 2000 == 1999 {
            push(&mut records, RecordKind::FINISHED_ROUND, &[]);
        }
    }
    let events = [EventDesc::new(attr, vec![1])];
    let written = Writer::new(Cursor::new(Vec::new()), &events).and_then(|mut writer| {
        writer.write_data(&records)?;
        writer.finish(FeatureSet::new(Endian::NATIVE).hostname("machine"))
    });
    written.expect("memory").1.into_inner()
}

fn push(out: &mut Vec<u8>, kind: RecordKind, body: &[u8]) {
    let misc = Misc(2);
    RawRecord { kind, misc, body }.encode(Endian::NATIVE, out);
}

fn pass_1(criterion: &mut Criterion) {
    let file = recording();
    let data = PerfData::parse(&file).expect("a sound file");
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
            while records.next_whole().is_some() {
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
