//! Builder of a small perf.data: one attr and one sample per tracepoint.

use std::collections::BTreeMap;

use rperf_testkit::{FileAttr, PerfFile};

/// A tracepoint of this machine and its raw record.
pub(super) struct Sample {
    pub(super) system: String,
    pub(super) format_text: String,
    pub(super) id: u64,
    pub(super) raw: Vec<u8>,
}

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TID | TIME | CPU | PERIOD | RAW | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// `PERF_FORMAT_ID`.
const READ_ID: u64 = 4;
/// `disabled`.
const DISABLED: u64 = 1;
const FIRST_ID: u64 = 1000;

fn u32s(out: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        out.extend_from_slice(&value.to_ne_bytes());
    }
}

fn u64s(out: &mut Vec<u8>, values: &[u64]) {
    for value in values {
        out.extend_from_slice(&value.to_ne_bytes());
    }
}

/// Pads `raw` like the kernel: including its length field, it fills whole 64-bit words.
pub(super) fn pad(raw: &mut Vec<u8>) {
    raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
}

/// Builds the file. `texts` are `header_page`, `header_event` and `printk_formats`.
pub(super) fn build(samples: &[Sample], texts: [&str; 3]) -> Vec<u8> {
    let mut file = match cfg!(target_endian = "big") {
        true => PerfFile::big_endian(),
        false => PerfFile::new(),
    };
    for (id, sample) in (FIRST_ID..).zip(samples) {
        let attr = FileAttr {
            kind: TRACEPOINT,
            config: sample.id,
            period: 1,
            sample_type: SAMPLE_TYPE,
            read_format: READ_ID,
            flags: DISABLED | FileAttr::SAMPLE_ID_ALL,
            ..FileAttr::default()
        };
        file.event(&attr, &[id]);
    }
    for (index, sample) in (0..).zip(samples) {
        let body = file.bytes().u64(FIRST_ID + index).u32(1).u32(1);
        let body = body.u64(1_000_000_000 + index * 1000).u32(0).u32(0).u64(1);
        let body = body.u32(sample.raw.len() as u32).raw(&sample.raw);
        file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body.done());
    }
    file.feature(PerfFile::TRACING_DATA, tracing_data(samples, texts));
    file.finish()
}

fn tracing_data(samples: &[Sample], [page, event, printk]: [&str; 3]) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing0.6\0".to_vec();
    out.push(u8::from(cfg!(target_endian = "big")));
    out.push(size_of::<usize>() as u8);
    u32s(&mut out, &[4096]);
    for (name, text) in [("header_page", page), ("header_event", event)] {
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        u64s(&mut out, &[text.len() as u64]);
        out.extend_from_slice(text.as_bytes());
    }
    let mut systems: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for sample in samples {
        systems
            .entry(&sample.system)
            .or_default()
            .push(&sample.format_text);
    }
    u32s(&mut out, &[0, systems.len() as u32]);
    for (system, formats) in systems {
        out.extend_from_slice(system.as_bytes());
        out.push(0);
        u32s(&mut out, &[formats.len() as u32]);
        for format in formats {
            u64s(&mut out, &[format.len() as u64]);
            out.extend_from_slice(format.as_bytes());
        }
    }
    u32s(&mut out, &[0, printk.len() as u32]);
    out.extend_from_slice(printk.as_bytes());
    u64s(&mut out, &[0]);
    out
}
