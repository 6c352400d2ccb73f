//! Recordings that the benchmarks create in memory.

use std::io::Cursor;

use rperf_perfdata::{EventDesc, FeatureSet, Writer};
use rperf_wire::{
    Attr, AttrFlags, Encoder, Endian, EventType, Misc, RawRecord, RecordKind, SampleLayout,
    SampleRecord, SampleType,
};

/// `PERF_RECORD_MISC_USER`.
const USER: Misc = Misc::USER;

/// A recording under construction, of one event.
pub(crate) struct Recording {
    attr: Attr,
    layout: SampleLayout,
    records: Vec<u8>,
    /// Buffer for the body of a sample.
    body: Vec<u8>,
}

impl Recording {
    /// Creates a recording without records, with `reserved_bytes` of capacity for them. Its samples have these fields.
    pub(crate) fn new(fields: &[SampleType], reserved_bytes: usize) -> Self {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            sample_type: fields.iter().fold(SampleType(0), |all, bit| all | *bit),
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        };
        Self {
            layout: SampleLayout::new(&attr),
            attr,
            records: Vec::with_capacity(reserved_bytes),
            body: Vec::new(),
        }
    }

    /// Appends a sample; returns the size of all records in bytes.
    pub(crate) fn sample(&mut self, sample: &SampleRecord<'_>) -> usize {
        self.body.clear();
        let to = &mut Encoder::new(&mut self.body, Endian::NATIVE);
        self.layout.encode(sample, to);
        let (kind, misc) = (RecordKind::SAMPLE, USER);
        let body = &self.body;
        RawRecord { kind, misc, body }.encode(Endian::NATIVE, &mut self.records);
        self.records.len()
    }

    /// Appends a FINISHED_ROUND record.
    pub(crate) fn round(&mut self) {
        let (kind, misc) = (RecordKind::FINISHED_ROUND, Misc(0));
        let body = &[];
        RawRecord { kind, misc, body }.encode(Endian::NATIVE, &mut self.records);
    }

    /// Returns the file.
    pub(crate) fn file(self) -> Vec<u8> {
        let ids = vec![1];
        let events = [EventDesc::new(self.attr, ids)];
        let written = Writer::new(Cursor::new(Vec::new()), &events).and_then(|mut writer| {
            writer.write_data(&self.records)?;
            writer.finish(FeatureSet::new(Endian::NATIVE).hostname("machine"))
        });
        let (_, output) = written.expect("memory");
        output.into_inner()
    }
}
