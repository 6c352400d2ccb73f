//! Reading a perf.data file.

use rperf_wire::{Attr, Endian};

use crate::event::decode_events;
use crate::header::Section;
use crate::naming::name_tracepoints;
use crate::simpleperf::add_tracing_data_of_records;
use crate::{
    Error, EventDesc, EventUpdate, Features, FileFinding, FileHeader, PipeHead, Records,
    UnpackSummary,
};

/// A perf.data file, or a complete stream of pipe mode, borrowed from its bytes.
#[derive(Debug, Clone)]
pub struct PerfData<'a> {
    header: FileHeader,
    events: Vec<EventDesc>,
    features: Features<'a>,
    pub(crate) data: &'a [u8],
    /// The section of event type names in very old files.
    pub(crate) event_types: &'a [u8],
    /// Set if `data` are not all records of the file as stored, but decompressed, merged, or a prefix.
    pub(crate) unpacked: Option<UnpackSummary>,
    updates: Vec<EventUpdate>,
    findings: Vec<FileFinding>,
}

impl<'a> PerfData<'a> {
    /// Parses header, event descriptions and the table of features. In pipe mode, reads all records
    /// for them.
    ///
    /// # Errors
    /// [`Error`] if a part without which the file cannot be read is invalid. Other problems are [`FileFinding`]s.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = FileHeader::decode(bytes)?;
        if header.is_pipe() {
            return Self::parse_pipe(bytes, header);
        }
        let events = decode_events(bytes, &header)?;
        Self::parse_file(bytes, header, events)
    }

    /// Like [`PerfData::parse`], but accepts a file with an empty attr section, such as those of `sched stats record`.
    ///
    /// # Errors
    /// Errors of [`PerfData::parse`].
    pub fn parse_even_without_events(bytes: &'a [u8]) -> Result<Self, Error> {
        let header = FileHeader::decode(bytes)?;
        if header.is_pipe() || header.attrs.size > 0 {
            return Self::parse(bytes);
        }
        Self::parse_file(bytes, header, Vec::new())
    }

    fn parse_file(
        bytes: &'a [u8],
        header: FileHeader,
        mut events: Vec<EventDesc>,
    ) -> Result<Self, Error> {
        let mut findings = Vec::new();
        let data = record_bytes(bytes, &header, &mut findings)?;
        let known = Attr::SIZE_VER9 as u64;
        // An entry of the attr section is an attr and the section of its ids.
        let size = header.attr_size.saturating_sub(Section::SIZE as u64);
        if size > known {
            findings.push(FileFinding::AttrLarger { size, known });
        }
        // The table of features follows the records: it is missing if the recorder did not finish or the file is truncated.
        let mut features = if data.len() as u64 == header.data.size {
            Features::decode(bytes, &header, &mut findings)
        } else {
            Features::none(header.endian)
        };
        findings.extend(features.malformed());
        let records = Records::new(data, header.data.offset, header.endian);
        // simpleperf stores the tracepoint formats in the first records.
        add_tracing_data_of_records(records, &events, &mut features);
        // Like perf, matches descriptions to events by index.
        for (event, description) in events
            .iter_mut()
            .zip(features.event_desc().unwrap_or_default())
        {
            if !description.name.is_empty() {
                event.name = description.name;
            }
        }
        name_tracepoints(&mut events, &features);
        Ok(Self {
            events,
            features,
            data,
            event_types: header.event_types.of(bytes).unwrap_or_default(),
            header,
            unpacked: None,
            updates: Vec::new(),
            findings,
        })
    }

    /// Reads all records of pipe mode once to collect the metadata.
    fn parse_pipe(bytes: &'a [u8], header: FileHeader) -> Result<Self, Error> {
        let start = usize::try_from(header.data.offset).unwrap_or(usize::MAX);
        let data = bytes.get(start..).unwrap_or_default();
        let records = Records::new(data, header.data.offset, header.endian);
        let head = PipeHead::of(records, header.endian)?;
        let (events, features, updates, findings) = head.into_parts();
        Ok(Self {
            header,
            events,
            features,
            data,
            event_types: &[],
            unpacked: None,
            updates,
            findings,
        })
    }

    /// Byte order of the file.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.header.endian
    }

    /// The header of the file.
    #[must_use]
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The events, in the order of the file.
    #[must_use]
    pub fn events(&self) -> &[EventDesc] {
        &self.events
    }

    /// The EVENT_UPDATE records of pipe mode; empty for a file. A record that renames an event whose description precedes it is
    /// not included: the name is in [`PerfData::events`].
    #[must_use]
    pub fn updates(&self) -> &[EventUpdate] {
        &self.updates
    }

    /// The feature sections; in pipe mode, those in records.
    #[must_use]
    pub fn features(&self) -> &Features<'a> {
        &self.features
    }

    /// All records, undecoded.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The bytes of the records from a position ([`crate::RecordAt::position`]) on; empty if it is outside the records.
    #[must_use]
    pub fn data_from(&self, position: u64) -> &'a [u8] {
        let offset = position.wrapping_sub(self.data_offset());
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.data.get(offset..).unwrap_or_default()
    }

    /// Offset of the first record from the start of the file.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.header.data.offset
    }

    /// Problems that did not prevent reading the file.
    #[must_use]
    pub fn findings(&self) -> &[FileFinding] {
        &self.findings
    }

    /// Whether the file is shorter than its header says, so that records are missing.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        let is_truncated =
            |finding: &FileFinding| matches!(finding, FileFinding::DataTruncated { .. });
        self.findings.iter().any(is_truncated)
    }

    /// The records in file order. Iteration ends with an error at an incomplete or invalid record.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records::new(self.data, self.header.data.offset, self.header.endian)
    }
}

/// The bytes of the records: to the end of the file if the recorder was killed or the file is
/// truncated.
fn record_bytes<'a>(
    file: &'a [u8],
    header: &FileHeader,
    findings: &mut Vec<FileFinding>,
) -> Result<&'a [u8], Error> {
    let section = header.data;
    let start = usize::try_from(section.offset).unwrap_or(usize::MAX);
    let rest = file.get(start..).ok_or(Error::Section {
        what: "data",
        offset: section.offset,
        size: section.size,
        file: file.len(),
    })?;
    // A killed recorder wrote no features; the data size in its header is 0, or what it was when the recorder last updated the
    // header. In a file without a feature bitmap, only the size 0 shows that the recorder was killed.
    let completed = header.size == FileHeader::SIZE_WITHOUT_FEATURES || header.features != [0; 4];
    let has_more = !completed && rest.len() as u64 > section.size;
    if section.size == 0 || has_more {
        findings.push(FileFinding::Unfinished);
        return Ok(rest);
    }
    Ok(section.of(file).unwrap_or_else(|| {
        findings.push(FileFinding::DataTruncated {
            offset: section.offset,
            need: section.size,
            have: rest.len() as u64,
        });
        rest
    }))
}
