//! Builds a perf.data file in memory, record by record.

use std::collections::BTreeMap;

use rperf_testkit::PerfFile;
use rperf_wire::{
    Attr, AttrFlags, Encoder, Endian, EventType, Misc, Record, RecordKind, SampleId,
    SampleIdLayout, SampleLayout, SampleRecord, SampleType,
};

/// The attr of a software event with these sample fields, and with trailers in records other than samples.
pub(crate) fn attr(sample_type: SampleType) -> Attr {
    Attr {
        kind: EventType::SOFTWARE,
        // Any number other than 0; it is the period of samples that record none.
        sample_period: 7,
        sample_type,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// A file of records, encoded by `rperf_wire`.
pub(crate) struct FileBuilder {
    endian: Endian,
    attrs: Vec<Attr>,
    file: PerfFile,
}

impl FileBuilder {
    /// Creates a file without records. `events` are the attrs, each with the ids of its event.
    pub(crate) fn new(endian: Endian, events: &[(Attr, Vec<u64>)]) -> Self {
        Self::with_features(endian, events, BTreeMap::new())
    }

    /// Like `new`, with feature sections by number.
    pub(crate) fn with_features(
        endian: Endian,
        events: &[(Attr, Vec<u64>)],
        features: BTreeMap<u32, Vec<u8>>,
    ) -> Self {
        let mut file = match endian {
            Endian::Little => PerfFile::new(),
            Endian::Big => PerfFile::big_endian(),
        };
        for (attr, ids) in events {
            file.encoded_event(attr.encode(endian), ids);
        }
        for (number, section) in features {
            file.feature(number, section);
        }
        Self {
            endian,
            attrs: events.iter().map(|(attr, _)| attr.clone()).collect(),
            file,
        }
    }

    /// Appends a record and returns its position in the file.
    pub(crate) fn raw(&mut self, kind: RecordKind, misc: Misc, body: &[u8]) -> u64 {
        self.file.record(kind.0, misc.0, body)
    }

    /// Appends a record with the trailer `id` in the layout of the event with the index `event`, and returns the record's
    /// position in the file. `misc` is added to the flags that the record's fields imply.
    pub(crate) fn record(
        &mut self,
        event: usize,
        misc: Misc,
        record: &Record<'_>,
        id: &SampleId,
    ) -> u64 {
        let mut body = Vec::new();
        let mut to = Encoder::new(&mut body, self.endian);
        record.encode_body(&mut to);
        SampleIdLayout::new(self.attrs[event].sample_type).encode(id, &mut to);
        let (kind, implied) = record.kind_and_misc();
        self.raw(kind, Misc(implied.0 | misc.0), &body)
    }

    /// Appends a sample of the event `event`, and returns its position in the file.
    pub(crate) fn sample(&mut self, event: usize, misc: Misc, sample: &SampleRecord<'_>) -> u64 {
        let mut body = Vec::new();
        let layout = SampleLayout::new(&self.attrs[event]);
        layout.encode(sample, &mut Encoder::new(&mut body, self.endian));
        self.raw(RecordKind::SAMPLE, misc, &body)
    }

    /// Appends a FINISHED_ROUND record, and returns its position in the file.
    pub(crate) fn round(&mut self) -> u64 {
        self.raw(RecordKind::FINISHED_ROUND, Misc(0), &[])
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.file.finish()
    }
}
