//! Writes a perf.data file with generated samples. rperf and Linux perf can read it.
//!
//! `cargo run --example write_perfdata -- made.data && rperf report -i made.data --stdio`

use std::fs::File;

use rperf_perfdata::{EventDesc, FeatureSet, Writer};
use rperf_wire::{
    Attr, AttrFlags, Comm, Encoder, Endian, EventType, Misc, RawRecord, Record, RecordKind,
    SampleId, SampleIdLayout, SampleLayout, SampleRecord, SampleType,
};

const PID: u32 = 4711;
/// `PERF_RECORD_MISC_USER`.
const USER: Misc = Misc(2);

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("made.data".into());
    let attr = Attr {
        kind: EventType::SOFTWARE,
        // PERF_COUNT_SW_CPU_CLOCK.
        config: 0,
        sample_period: 1_000_000,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::PERIOD,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let (sample_layout, trailer_layout) = (
        SampleLayout::new(&attr),
        SampleIdLayout::new(attr.sample_type),
    );
    // An id, as the kernel gives to each opened event. With only one event, its records need not contain the id.
    let ids = vec![1];
    let mut writer = Writer::new(File::create(path)?, &[EventDesc::new(attr, ids)])?;

    // The COMM record precedes the samples of its process. With SAMPLE_ID_ALL, it ends with a sample_id trailer.
    let comm = Record::Comm(Comm {
        pid: PID,
        tid: PID,
        comm: b"made-up",
    });
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body, Endian::NATIVE);
    comm.encode_body(&mut encoder);
    trailer_layout.encode(
        &SampleId {
            pid_tid: Some((PID, PID)),
            time: Some(1),
            ..SampleId::default()
        },
        &mut encoder,
    );
    writer.write_data(&record(RecordKind::COMM, Misc(0), &body))?;

    for number in 0..100 {
        let sample = SampleRecord {
            ip: Some(0x1000 + number % 7 * 0x10),
            pid_tid: Some((PID, PID)),
            time: Some(number * 1_000_000 + 2),
            period: Some(1_000_000),
            ..SampleRecord::default()
        };
        body.clear();
        sample_layout.encode(&sample, &mut Encoder::new(&mut body, Endian::NATIVE));
        writer.write_data(&record(RecordKind::SAMPLE, USER, &body))?;
    }

    let mut features = FeatureSet::new(Endian::NATIVE);
    features.hostname("nowhere").cmdline(&["write_perfdata"]);
    writer.finish(&features)?;
    Ok(())
}

/// A record with its header.
fn record(kind: RecordKind, misc: Misc, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    RawRecord { kind, misc, body }.encode(Endian::NATIVE, &mut bytes);
    bytes
}
