//! Inserts TEXT_POKE records into recordings, since the kernel rarely writes one.

use rperf_perfdata::PerfData;
use rperf_wire::{
    Encoder, Endian, Misc, RawRecord, Record, RecordKind, SampleId, SampleIdLayout, SampleLayout,
    SampleRecord, TextPoke,
};

/// The samples of a recording whose events all have the same sample layout, with their file offsets.
pub(crate) fn samples<'a>(data: &PerfData<'a>) -> Vec<(u64, SampleRecord<'a>)> {
    let layout = SampleLayout::new(&data.events()[0].attr);
    let records = data.records().filter_map(Result::ok);
    let samples = records.filter(|record| record.raw.kind == RecordKind::SAMPLE);
    let decoded = samples.map(|record| {
        let sample = layout.decode(record.raw.body, data.endian());
        (record.position, sample.expect("a complete sample"))
    });
    decoded.collect()
}

/// Inserts a TEXT_POKE record just before the sample with the index `before` of `recording`, with the sample id of
/// that sample.
pub(crate) fn with_text_poke(recording: &[u8], before: usize, poke: TextPoke<'_>) -> Vec<u8> {
    let data = PerfData::parse(recording).expect("a recording");
    let (position, sample) = samples(&data).swap_remove(before);
    let mut body = Vec::new();
    let mut encoder = Encoder::new(&mut body, data.endian());
    Record::TextPoke(poke).encode_body(&mut encoder);
    let trailer = SampleId {
        pid_tid: sample.pid_tid,
        time: sample.time,
        id: sample.id,
        stream_id: sample.stream_id,
        cpu: sample.cpu,
    };
    let layout = SampleIdLayout::new(data.events()[0].attr.sample_type);
    layout.encode(&trailer, &mut encoder);
    let mut record = Vec::new();
    let raw = RawRecord {
        kind: RecordKind::TEXT_POKE,
        // PERF_RECORD_MISC_KERNEL.
        misc: Misc(1),
        body: &body,
    };
    raw.encode(data.endian(), &mut record);
    insert_record(recording, position, &record)
}

/// Returns the file with a record inserted at the file offset `position`. The size of the data section, which is in the file
/// header, and the offsets in the feature table, which is after the data, grow by the length of the record.
fn insert_record(recording: &[u8], position: u64, record: &[u8]) -> Vec<u8> {
    /// The offset of the size of the data section in the file header (`perf.data-file-format.txt`).
    const DATA_SIZE: usize = 48;
    let data = PerfData::parse(recording).expect("a recording");
    let header = data.header();
    assert_eq!(header.endian, Endian::NATIVE, "recorded on this machine");
    let at = usize::try_from(position).expect("a small file");
    let mut file = [&recording[..at], record, &recording[at..]].concat();
    let mut grow = |field: usize| {
        let bytes = file[field..field + 8].try_into().expect("eight bytes");
        let grown = u64::from_ne_bytes(bytes) + record.len() as u64;
        file[field..field + 8].copy_from_slice(&grown.to_ne_bytes());
    };
    grow(DATA_SIZE);
    let table = header.data.offset + header.data.size + record.len() as u64;
    let table = usize::try_from(table).expect("a small file");
    let features: u32 = header.features.iter().map(|bits| bits.count_ones()).sum();
    for feature in 0..features as usize {
        grow(table + feature * 16);
    }
    file
}
