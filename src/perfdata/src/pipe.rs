//! Pipe mode: a header of 16 bytes, then records. The metadata that a file has in its header are records too.
//!
//! ```text
//! offset 0     magic "PERFILE2", u64 16
//!        16    records; those of the types below are metadata:
//!              HEADER_ATTR          perf_event_attr, ids of the event
//!              HEADER_FEATURE       u64 number, then a feature section as in a file
//!              HEADER_TRACING_DATA  u32 size of the data that follow the record
//!              HEADER_BUILD_ID      one entry of the BUILD_ID feature
//!              EVENT_UPDATE         name, unit, scale or CPUs of an event
//! ```
//!
//! A stream has no size, and may describe further events at any point.

use std::borrow::Cow;

use rperf_wire::{Attr, Cursor, DecodeError, Endian, RecordKind};

use crate::event::decode_attr;
use crate::feature::BuildIdEntry;
use crate::naming::name_tracepoints;
use crate::{
    Error, EventDesc, EventProperty, EventUpdate, FeatureId, Features, FileFinding, RecordAt,
    Records, Section,
};

/// Metadata collected from the records of a stream so far.
#[derive(Debug, Clone)]
pub struct PipeHead<'a> {
    endian: Endian,
    events: Vec<EventDesc>,
    features: Features<'a>,
    updates: Vec<EventUpdate>,
    findings: Vec<FileFinding>,
    revision: u64,
}

impl<'a> PipeHead<'a> {
    /// Creates an empty head, before the first record.
    #[must_use]
    pub fn new(endian: Endian) -> Self {
        Self {
            endian,
            events: Vec::new(),
            features: Features::none(endian),
            updates: Vec::new(),
            findings: Vec::new(),
            revision: 0,
        }
    }

    /// Byte order of the stream.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// A number that increases with each record passed to [`PipeHead::note`] other than HEADER_BUILD_ID. If it is
    /// unchanged, so are the events, and all features but the build-ids.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The events so far, in the order of their records.
    #[must_use]
    pub fn events(&self) -> &[EventDesc] {
        &self.events
    }

    /// The header features so far.
    #[must_use]
    pub fn features(&self) -> &Features<'a> {
        &self.features
    }

    /// The EVENT_UPDATE records so far, except the names of events that were described before: those are in
    /// [`PipeHead::events`].
    #[must_use]
    pub fn updates(&self) -> &[EventUpdate] {
        &self.updates
    }

    /// Metadata records and features that could not be decoded; also one finding if any attrs have unknown fields.
    #[must_use]
    pub fn findings(&self) -> &[FileFinding] {
        &self.findings
    }

    /// Whether records of this type are metadata.
    #[inline]
    #[must_use]
    pub fn is_metadata(kind: RecordKind) -> bool {
        matches!(
            kind,
            RecordKind::HEADER_ATTR
                | RecordKind::HEADER_FEATURE
                | RecordKind::HEADER_TRACING_DATA
                | RecordKind::HEADER_BUILD_ID
                | RecordKind::EVENT_UPDATE
        )
    }

    /// Processes one record; types without metadata are ignored. `keep` returns the given bytes of the
    /// record, copied if the head outlives them.
    ///
    /// # Errors
    /// [`Error::Decode`] for a HEADER_ATTR that cannot be decoded: the samples could not be
    /// decoded either.
    pub fn note<'b>(
        &mut self,
        record: &RecordAt<'b>,
        keep: impl Fn(&'b [u8]) -> Cow<'a, [u8]>,
    ) -> Result<(), Error> {
        let body = record.raw.body;
        self.revision += u64::from(record.raw.kind != RecordKind::HEADER_BUILD_ID);
        match record.raw.kind {
            RecordKind::HEADER_ATTR => {
                let event =
                    decode_attr_record(body, self.endian).map_err(|source| Error::Decode {
                        what: "HEADER_ATTR record",
                        offset: record.position,
                        source,
                    })?;
                self.report_unknown_fields(body);
                let index = self.events.len();
                self.events.push(event);
                self.name_from_event_desc(index);
            }
            RecordKind::HEADER_FEATURE => self.add_feature(record, keep),
            RecordKind::HEADER_TRACING_DATA => {
                let data = record.tracing_data(self.endian).unwrap_or_default();
                let section = section_of(record, data.len());
                self.features
                    .put(FeatureId::TRACING_DATA, section, keep(data));
                name_tracepoints(&mut self.events, &self.features);
            }
            RecordKind::HEADER_BUILD_ID => {
                match BuildIdEntry::decode_record(&record.raw, self.endian) {
                    Ok(entry) => self.features.add_build_id(entry),
                    Err(_) => self.report_malformed(record),
                }
            }
            RecordKind::EVENT_UPDATE => match EventUpdate::decode(body, self.endian) {
                Ok(update) => self.update(update),
                Err(_) => self.report_malformed(record),
            },
            _ => {}
        }
        Ok(())
    }

    /// Adds the feature in a HEADER_FEATURE record.
    fn add_feature<'b>(&mut self, record: &RecordAt<'b>, keep: impl Fn(&'b [u8]) -> Cow<'a, [u8]>) {
        let body = record.raw.body;
        let number = self.endian.u64_at(body, 0);
        let (Some(number), Some(bytes)) = (number, body.get(size_of::<u64>()..)) else {
            return self.report_malformed(record);
        };
        // The header's bitmap has no bits for larger numbers, so they are not features.
        let Ok(number) = u8::try_from(number) else {
            return self.report_malformed(record);
        };
        let (feature, section) = (FeatureId(number), section_of(record, bytes.len()));
        self.features.put(feature, section, keep(bytes));
        if feature == FeatureId::EVENT_DESC {
            self.name_from_event_desc(0);
        }
        // Recorders write an empty section if they have no data, and perf one with HEADER_LAST_FEATURE at the end.
        if section.size > 0 && !self.features.decodes(feature) {
            let offset = section.offset;
            self.findings
                .push(FileFinding::FeatureMalformed { feature, offset });
        }
    }

    /// Names the events from index `first` on by the EVENT_DESC feature; like perf, matches its entries to events by index.
    fn name_from_event_desc(&mut self, first: usize) {
        let descriptions = self.features.event_desc().unwrap_or_default();
        for (event, description) in self.events.iter_mut().zip(descriptions).skip(first) {
            if !description.name.is_empty() {
                event.name = description.name;
            }
        }
    }

    /// Renames an event that was described before, or adds any other update to the list.
    fn update(&mut self, update: EventUpdate) {
        let mut events = self.events.iter_mut();
        let event = events.find(|event| event.ids.contains(&update.id));
        match (event, update.property) {
            (Some(event), EventProperty::Name(name)) => event.name = name,
            (_, property) => self.updates.push(EventUpdate {
                id: update.id,
                property,
            }),
        }
    }

    /// Reports once that attrs have unknown fields.
    fn report_unknown_fields(&mut self, body: &[u8]) {
        let known = Attr::SIZE_VER9 as u64;
        let size = self
            .endian
            .u32_at(body, ATTR_SIZE_OFFSET)
            .map_or(0, u64::from);
        let is_reported = |finding: &FileFinding| matches!(finding, FileFinding::AttrLarger { .. });
        if size > known && !self.findings.iter().any(is_reported) {
            self.findings.push(FileFinding::AttrLarger { size, known });
        }
    }

    fn report_malformed(&mut self, record: &RecordAt<'_>) {
        self.findings.push(FileFinding::RecordMalformed {
            kind: record.raw.kind,
            offset: record.position,
        });
    }
}

impl<'a> PipeHead<'a> {
    /// Collects the metadata of a complete stream. Stops at the first invalid record, which is reported when the
    /// records are read.
    pub(crate) fn of(records: Records<'a>, endian: Endian) -> Result<Self, Error> {
        let mut head = Self::new(endian);
        // `flatten` skips the error, which is the last item.
        for record in records.flatten() {
            if Self::is_metadata(record.raw.kind) {
                head.note(&record, Cow::Borrowed)?;
            }
        }
        if head.events.is_empty() {
            return Err(Error::NoAttrRecord);
        }
        Ok(head)
    }

    pub(crate) fn into_parts(
        self,
    ) -> (
        Vec<EventDesc>,
        Features<'a>,
        Vec<EventUpdate>,
        Vec<FileFinding>,
    ) {
        (self.events, self.features, self.updates, self.findings)
    }
}

/// Offset of `size` in an attr.
const ATTR_SIZE_OFFSET: usize = 4;

/// Decodes the body of a HEADER_ATTR record: an attr, then the event's ids.
fn decode_attr_record(body: &[u8], endian: Endian) -> Result<EventDesc, DecodeError> {
    let size = match endian.u32_at(body, ATTR_SIZE_OFFSET) {
        Some(0) | None => Attr::SIZE_VER0,
        Some(size) => size as usize,
    };
    let at = &mut Cursor::new(body, endian);
    let attr = decode_attr(at.take(size, "attr")?, endian)?;
    let ids = at.rest().as_chunks().0.iter().map(|id| endian.u64(*id));
    Ok(EventDesc::new(attr, ids.collect()))
}

/// Returns a section for `size` bytes of data in a record. Its offset, for messages, is that of the record.
fn section_of(record: &RecordAt<'_>, size: usize) -> Section {
    Section {
        offset: record.position,
        size: size as u64,
    }
}
