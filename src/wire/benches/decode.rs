//! Benchmark of decoding: records per second on one core (`cargo bench -p rperf-wire`).

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rperf_wire::{
    Attr, Encoder, Endian, MAP_PRIVATE, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ, RawRecord,
    Record, RecordHeader, RecordKind, SampleLayout, SampleRecord, SampleType, U64s,
};

/// Number of records that each benchmark decodes in one iteration.
const COUNT: u64 = 100_000;

/// Appends a record to `out`.
fn push_record(out: &mut Vec<u8>, kind: RecordKind, body: &[u8]) {
    let size = u16::try_from(body.len() + RecordHeader::SIZE).unwrap_or(u16::MAX);
    let misc = Misc::USER;
    let mut to = Encoder::new(out, Endian::NATIVE);
    RecordHeader { kind, misc, size }.encode(&mut to);
    to.bytes(body);
}

fn layout(callchain: bool) -> SampleLayout {
    let fields = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::PERIOD,
    ];
    let chain = if callchain {
        SampleType::CALLCHAIN
    } else {
        SampleType(0)
    };
    SampleLayout::new(&Attr {
        sample_type: fields.into_iter().fold(chain, |all, bit| all | bit),
        ..Attr::default()
    })
}

fn samples(layout: &SampleLayout) -> Vec<u8> {
    let mut records = Vec::new();
    let mut body = Vec::new();
    for number in 0..COUNT {
        let chain: Vec<u8> = (0..10)
            .flat_map(|frame: u64| (0x1000 + frame * 64 + number % 7).to_ne_bytes())
            .collect();
        let sample = SampleRecord {
            ip: Some(0x1000 + number % 7),
            pid_tid: Some((7, 7)),
            time: Some(number),
            period: Some(1),
            // Not written if the layout has no callchain.
            callchain: Some(U64s::new(&chain, Endian::NATIVE)),
            ..SampleRecord::default()
        };
        body.clear();
        layout.encode(&sample, &mut Encoder::new(&mut body, Endian::NATIVE));
        push_record(&mut records, RecordKind::SAMPLE, &body);
    }
    records
}

fn mappings() -> Vec<u8> {
    let mut records = Vec::new();
    let mut body = Vec::new();
    for number in 0..COUNT {
        let mapping = Record::Mmap2(Mmap2 {
            mmap: Mmap {
                pid: 7,
                tid: 7,
                start: number << 12,
                len: 0x1000,
                pgoff: 0,
                filename: b"/usr/lib/x86_64-linux-gnu/libc.so.6",
            },
            id: MmapId::Inode {
                major: 8,
                minor: 1,
                inode: number,
                generation: 0,
            },
            prot: PROT_READ | PROT_EXEC,
            flags: MAP_PRIVATE,
        });
        body.clear();
        mapping.encode_body(&mut Encoder::new(&mut body, Endian::NATIVE));
        push_record(&mut records, RecordKind::MMAP2, &body);
    }
    records
}

/// Calls `visit` for each record of `bytes`, in order.
fn for_each_record<'a>(mut bytes: &'a [u8], mut visit: impl FnMut(&RawRecord<'a>)) {
    while let Some((raw, size)) = RawRecord::split(bytes, Endian::NATIVE) {
        visit(&raw);
        bytes = &bytes[size..];
    }
}

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Elements(COUNT));
    for (name, callchain) in [("sample", false), ("sample with 10 frames", true)] {
        let layout = layout(callchain);
        let records = samples(&layout);
        let mut sample = SampleRecord::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for_each_record(&records, |raw| {
                    let result = layout.decode_into(raw.body, Endian::NATIVE, &mut sample);
                    black_box((&sample, result.is_ok()));
                });
            });
        });
    }
    let records = mappings();
    group.bench_function("mmap2", |bencher| {
        bencher.iter(|| {
            for_each_record(&records, |raw| {
                drop(black_box(Record::decode(raw, Endian::NATIVE)))
            })
        });
    });
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
