//! A perf.data file in memory, record by record.

use rperf_wire::{
    Attr, AttrFlags, Encoder, Endian, EventType, Misc, Record, RecordHeader, RecordKind, Sample,
    SampleId, SampleIdLayout, SampleLayout, SampleType,
};

/// One event of the file.
pub(crate) fn attr(sample_type: SampleType) -> Attr {
    Attr {
        kind: EventType::SOFTWARE,
        sample_period: 7,
        sample_type,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// Collects records and puts header and events around them.
pub(crate) struct FileBuilder {
    endian: Endian,
    events: Vec<(Attr, Vec<u64>)>,
    data: Vec<u8>,
}

const HEADER_SIZE: usize = 104;

impl FileBuilder {
    pub(crate) fn new(endian: Endian, events: &[(Attr, Vec<u64>)]) -> Self {
        Self {
            endian,
            events: events.to_vec(),
            data: Vec::new(),
        }
    }

    /// Bytes of header, ids and events.
    fn head(&self) -> usize {
        let ids: usize = self.events.iter().map(|(_, ids)| ids.len() * 8).sum();
        HEADER_SIZE + ids + self.events.len() * (Attr::SIZE + 16)
    }

    /// Appends a record and returns its position in the file.
    pub(crate) fn raw(&mut self, kind: RecordKind, misc: Misc, body: &[u8]) -> u64 {
        let position = (self.head() + self.data.len()) as u64;
        let size = u16::try_from(RecordHeader::SIZE + body.len()).expect("a small record");
        let mut to = Encoder::new(&mut self.data, self.endian);
        RecordHeader { kind, misc, size }.encode(&mut to);
        to.bytes(body);
        position
    }

    /// Appends a record with the trailer of the event `event`.
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
        SampleIdLayout::new(self.events[event].0.sample_type).encode(id, &mut to);
        let (kind, own) = record.kind_and_misc();
        self.raw(kind, Misc(own.0 | misc.0), &body)
    }

    pub(crate) fn sample(&mut self, event: usize, misc: Misc, sample: &Sample<'_>) -> u64 {
        let mut body = Vec::new();
        let layout = SampleLayout::new(&self.events[event].0);
        layout.encode(sample, &mut Encoder::new(&mut body, self.endian));
        self.raw(RecordKind::SAMPLE, misc, &body)
    }

    pub(crate) fn round(&mut self) -> u64 {
        self.raw(RecordKind::FINISHED_ROUND, Misc(0), &[])
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut file = Vec::new();
        let head = self.head();
        let attrs = self.events.len() * (Attr::SIZE + 16);
        let mut to = Encoder::new(&mut file, self.endian);
        to.u64(match self.endian {
            Endian::Little => u64::from_le_bytes(*b"PERFILE2"),
            Endian::Big => u64::from_be_bytes(*b"2ELIFREP"),
        });
        to.u64(HEADER_SIZE as u64);
        to.u64(Attr::SIZE as u64 + 16);
        for (offset, size) in [(head - attrs, attrs), (head, self.data.len()), (0, 0)] {
            to.u64(offset as u64);
            to.u64(size as u64);
        }
        to.zeros(32);
        for (_, ids) in &self.events {
            ids.iter().for_each(|id| to.u64(*id));
        }
        let mut at = HEADER_SIZE as u64;
        for (attr, ids) in &self.events {
            let size = ids.len() as u64 * 8;
            to.bytes(&attr.encode(self.endian));
            to.u64(at);
            to.u64(size);
            at += size;
        }
        to.bytes(&self.data);
        file
    }
}
