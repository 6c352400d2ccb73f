//! Writing a recording in pipe mode, where nothing can be updated later and metadata are records.

use std::io::{self, Write};

use rperf_wire::{Encoder, Endian, Misc, RecordHeader, RecordKind};

use crate::{EventDesc, FeatureId, FeatureSet, FileHeader, WriteError};

/// Writes a stream: metadata first, then records as they arrive.
#[derive(Debug)]
pub struct PipeWriter<W> {
    output: W,
    /// Number of bytes written.
    bytes: u64,
    /// Number of bytes written before the first [`PipeWriter::write_data`].
    head_bytes: u64,
    /// Whether a write failed: nothing more is written then.
    ended: bool,
}

impl<W: Write> PipeWriter<W> {
    /// Writes the header, an attr for each event and the features, in this machine's byte order.
    /// Features too large for their records are omitted.
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn new(output: W, events: &[EventDesc], features: &FeatureSet) -> Result<Self, WriteError> {
        Self::with_endian(output, events, features, Endian::NATIVE)
    }

    /// Like [`PipeWriter::new`] in another byte order, which must be that of `features`.
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn with_endian(
        mut output: W,
        events: &[EventDesc],
        features: &FeatureSet,
        endian: Endian,
    ) -> Result<Self, WriteError> {
        let mut head = FileHeader::encode_pipe(endian);
        for event in events {
            encode_attr_record(&mut head, event, endian);
        }
        for (feature, content) in features.sections() {
            // These two have record types of their own, see below.
            if feature != FeatureId::TRACING_DATA && feature != FeatureId::BUILD_ID {
                encode_record(&mut head, RecordKind::HEADER_FEATURE, endian, |to| {
                    to.u64(u64::from(feature.0));
                    to.bytes(content);
                });
            }
        }
        for (feature, content) in features.sections() {
            match feature {
                FeatureId::TRACING_DATA => encode_tracing_data(&mut head, content, endian),
                FeatureId::BUILD_ID => encode_build_ids(&mut head, content, endian),
                _ => {}
            }
        }
        output.write_all(&head).map_err(WriteError::Header)?;
        Ok(Self {
            output,
            bytes: head.len() as u64,
            head_bytes: head.len() as u64,
            ended: false,
        })
    }

    /// Writes the header alone: metadata are among the records of [`PipeWriter::write_data`].
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn without_metadata(mut output: W, endian: Endian) -> Result<Self, WriteError> {
        let head = FileHeader::encode_pipe(endian);
        output.write_all(&head).map_err(WriteError::Header)?;
        Ok(Self {
            output,
            bytes: head.len() as u64,
            head_bytes: head.len() as u64,
            ended: false,
        })
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The output.
    #[must_use]
    pub fn output(&self) -> &W {
        &self.output
    }

    /// Appends complete records.
    ///
    /// # Errors
    /// [`WriteError::Data`] if the reader closed the pipe or writing fails. Later calls fail with [`WriteError::Ended`].
    pub fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if self.ended {
            return Err(WriteError::Ended { offset: self.bytes });
        }
        let written = self.output.write_all(records);
        written.map_err(|source| {
            self.ended = true;
            WriteError::Data {
                offset: self.bytes,
                kept: self.bytes - self.head_bytes,
                source,
            }
        })?;
        self.bytes += records.len() as u64;
        Ok(())
    }

    /// Flushes buffered output.
    ///
    /// # Errors
    /// The output's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Appends a record; one that exceeds the 16-bit size is omitted.
fn encode_record(
    bytes: &mut Vec<u8>,
    kind: RecordKind,
    endian: Endian,
    body: impl FnOnce(&mut Encoder<'_>),
) {
    RecordHeader::encode_record(kind, Misc(0), bytes, endian, body);
}

/// Appends a HEADER_ATTR record: the event's attr with as many of its ids as fit, about 8,000.
pub fn encode_attr_record(bytes: &mut Vec<u8>, event: &EventDesc, endian: Endian) {
    let attr = event.attr.encode(endian);
    let room = usize::from(u16::MAX).saturating_sub(RecordHeader::SIZE + attr.len());
    encode_record(bytes, RecordKind::HEADER_ATTR, endian, |to| {
        to.bytes(&attr);
        let ids = event.ids.iter().take(room / size_of::<u64>());
        ids.for_each(|id| to.u64(*id));
    });
}

/// Appends a HEADER_TRACING_DATA record and the data, whose size is rounded up to eight bytes. Data of 4 GiB or more are
/// omitted.
pub fn encode_tracing_data(bytes: &mut Vec<u8>, content: &[u8], endian: Endian) {
    let padded_size = content.len().next_multiple_of(8);
    let Ok(size) = u32::try_from(padded_size) else {
        return;
    };
    encode_record(bytes, RecordKind::HEADER_TRACING_DATA, endian, |to| {
        to.u32(size);
        to.zeros(4);
    });
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len() + padded_size - content.len(), 0);
}

/// Appends the entries of a BUILD_ID section as HEADER_BUILD_ID records. In the section they are records of type 0 and of
/// any size. In a stream, newer releases of perf refuse records whose size is not a multiple of eight, so entries are padded.
fn encode_build_ids(bytes: &mut Vec<u8>, mut content: &[u8], endian: Endian) {
    while let Ok(header) = RecordHeader::decode(content, endian) {
        let size = usize::from(header.size).max(RecordHeader::SIZE);
        let Some((entry, rest)) = content.split_at_checked(size) else {
            return;
        };
        content = rest;
        let padded_size = size.next_multiple_of(size_of::<u64>());
        let Ok(header_size) = u16::try_from(padded_size) else {
            continue;
        };
        let to = &mut Encoder::new(bytes, endian);
        let header = RecordHeader {
            kind: RecordKind::HEADER_BUILD_ID,
            size: header_size,
            ..header
        };
        header.encode(to);
        to.bytes(entry.get(RecordHeader::SIZE..).unwrap_or_default());
        to.zeros(padded_size - size);
    }
}
