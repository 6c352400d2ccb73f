//! Builds a small perf.data by hand: one attr and one sample per tracepoint.

use std::collections::BTreeMap;

/// A tracepoint of this machine and the raw record to put in the file.
pub(super) struct Sample {
    pub(super) system: String,
    pub(super) format_text: String,
    pub(super) id: u64,
    pub(super) raw: Vec<u8>,
}

const HEADER_SIZE: u64 = 104;
const ATTR_SIZE: u64 = 128;
const FEATURE_TRACING_DATA: u64 = 1 << 1;
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
const DISABLED_AND_SAMPLE_ID_ALL: u64 = 1 | 1 << 18;
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

/// Pads `raw` as the kernel does: with its length before it, it fills whole 64-bit words.
pub(super) fn pad(raw: &mut Vec<u8>) {
    raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
}

/// The bytes of the file. `texts` are `header_page`, `header_event` and `printk_formats`.
pub(super) fn build(samples: &[Sample], texts: [&str; 3]) -> Vec<u8> {
    let count = samples.len() as u64;
    let ids_size = count * 8;
    let attrs_offset = HEADER_SIZE + ids_size;
    let attrs_size = count * (ATTR_SIZE + 16);
    let mut data = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let index = index as u64;
        let size = 8 + 8 + 8 + 8 + 8 + 8 + 4 + sample.raw.len() as u32;
        u32s(&mut data, &[9, size << 16 | 1]);
        u64s(&mut data, &[FIRST_ID + index]);
        u32s(&mut data, &[1, 1]);
        u64s(&mut data, &[1_000_000_000 + index * 1000]);
        u32s(&mut data, &[0, 0]);
        u64s(&mut data, &[1]);
        u32s(&mut data, &[sample.raw.len() as u32]);
        data.extend_from_slice(&sample.raw);
    }
    let tracing = tracing_data(samples, texts);
    let data_offset = attrs_offset + attrs_size;
    let features_offset = data_offset + data.len() as u64;
    let mut file = Vec::new();
    file.extend_from_slice(b"PERFILE2");
    u64s(
        &mut file,
        &[HEADER_SIZE, ATTR_SIZE + 16, attrs_offset, attrs_size],
    );
    u64s(&mut file, &[data_offset, data.len() as u64, 0, 0]);
    u64s(&mut file, &[FEATURE_TRACING_DATA, 0, 0, 0]);
    u64s(&mut file, &(FIRST_ID..FIRST_ID + count).collect::<Vec<_>>());
    for (index, sample) in samples.iter().enumerate() {
        let start = file.len();
        u32s(&mut file, &[2, ATTR_SIZE as u32]);
        u64s(
            &mut file,
            &[sample.id, 1, SAMPLE_TYPE, 4, DISABLED_AND_SAMPLE_ID_ALL],
        );
        file.resize(start + ATTR_SIZE as usize, 0);
        u64s(&mut file, &[HEADER_SIZE + index as u64 * 8, 8]);
    }
    file.extend_from_slice(&data);
    u64s(&mut file, &[features_offset + 16, tracing.len() as u64]);
    file.extend_from_slice(&tracing);
    file
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
