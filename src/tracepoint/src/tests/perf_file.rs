//! Builder of a small perf.data: one attr and one sample per tracepoint.

use rperf_testkit::{FileAttr, PerfFile};

use crate::{Abi, TracingDataBuilder};

/// A tracepoint of this machine and its raw record.
pub(super) struct Sample {
    pub(super) system: String,
    pub(super) format_text: String,
    /// `attr.config` of the event.
    pub(super) tracepoint_id: u64,
    pub(super) raw: Vec<u8>,
}

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TID | TIME | CPU | PERIOD | RAW | IDENTIFIER`.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// `PERF_FORMAT_ID`.
const READ_ID: u64 = 4;
/// The bit `disabled` of an attr.
const DISABLED: u64 = 1;
/// Sample id (`PERF_SAMPLE_IDENTIFIER`) of the first event; the ids of the others count up from it.
const FIRST_ID: u64 = 1000;

/// Pads `raw` like the kernel: together with its length field of 4 bytes, it fills whole 64-bit words.
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
            config: sample.tracepoint_id,
            period: 1,
            sample_type: SAMPLE_TYPE,
            read_format: READ_ID,
            flags: DISABLED | FileAttr::SAMPLE_ID_ALL,
            ..FileAttr::default()
        };
        file.event(&attr, &[id]);
    }
    for (index, sample) in (0..).zip(samples) {
        // The identifier, pid and tid.
        let body = file.bytes().u64(FIRST_ID + index).u32(1).u32(1);
        // The time, CPU, a reserved word and the period.
        let body = body.u64(1_000_000_000 + index * 1000).u32(0).u32(0).u64(1);
        let body = body.u32(sample.raw.len() as u32).raw(&sample.raw);
        file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body.done());
    }
    file.feature(PerfFile::TRACING_DATA, tracing_data(samples, texts));
    file.finish()
}

fn tracing_data(samples: &[Sample], [page, event, printk]: [&str; 3]) -> Vec<u8> {
    let Abi { endian, long_size } = Abi::NATIVE;
    let page_size = 4096;
    let mut builder = TracingDataBuilder::new(endian, long_size, page_size);
    builder
        .headers(page.as_bytes(), event.as_bytes())
        .printk_formats(printk.as_bytes());
    for sample in samples {
        builder.event(&sample.system, sample.format_text.as_bytes());
    }
    builder.encode()
}
