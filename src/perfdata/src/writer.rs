//! Writing a file while recording.
//!
//! The header is complete from the start except for the data size and the feature bitmap, so that the
//! file of a killed recorder is readable up to its last complete record. If a write fails, the data end at a
//! record boundary, and [`Writer::finish`] still completes the file.

use std::fs::File;
use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};

use rperf_wire::{Encoder, Endian};

use crate::event::encode_attrs;
use crate::header::Section;
use crate::{EventDesc, FeatureSet, FileHeader, PartWriter};

/// The output of a recording: a file, or memory.
pub trait Output: Write + Seek {
    /// Truncates or extends the output to `size` bytes.
    ///
    /// # Errors
    /// The system's error.
    fn set_size(&mut self, size: u64) -> io::Result<()>;
}

impl Output for File {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }
}

impl Output for BufWriter<File> {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.flush()?;
        self.get_ref().set_len(size)
    }
}

impl<W: Output + ?Sized> Output for &mut W {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        (**self).set_size(size)
    }
}

impl Output for Cursor<Vec<u8>> {
    fn set_size(&mut self, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(io::Error::other)?;
        self.get_mut().resize(size, 0);
        Ok(())
    }
}

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The header could not be written.
    #[error("cannot write the header")]
    Header(#[source] io::Error),
    /// A stream (pipe mode) or a part without header ([`PartWriter`]) could not be flushed at its end. [`Writer::finish`]
    /// returns [`Self::Header`] instead.
    #[error("cannot write the last records")]
    End(#[source] io::Error),
    /// Records could not be written, often because the disk is full. [`Writer::finish`] completes
    /// the file with the records kept.
    #[error("cannot write at offset {offset:#x}; {kept} bytes of complete records are kept")]
    Data {
        /// Offset from the start of the file where writing failed.
        offset: u64,
        /// Bytes of complete records in the file.
        kept: u64,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Records were written after a failure.
    #[error("the recording ended at offset {offset:#x} after a failed write")]
    Ended {
        /// End of the data, from the start of the file.
        offset: u64,
    },
}

/// Summary of a finished file.
#[derive(Debug)]
pub struct FinishedFile {
    /// Bytes of records.
    pub data_bytes: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
    /// The error that prevented writing the feature sections; `None` if they are complete. The records are readable without
    /// them.
    pub features_lost: Option<io::Error>,
}

/// The parts of a file before its records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preamble<'a> {
    pub(crate) events: &'a [EventDesc],
    /// The content of the section of event type names, for a copy of a very old file; empty for none.
    pub(crate) event_types: &'a [u8],
    pub(crate) endian: Endian,
}

/// Writes a file: header, records as they arrive, features at the end.
#[derive(Debug)]
pub struct Writer<W> {
    /// The writer of the records; its `section` becomes the data section of the header.
    data: PartWriter<W>,
    header: FileHeader,
}

impl<W: Output> Writer<W> {
    /// Writes the header, the ids and the attrs in this machine's byte order.
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn new(output: W, events: &[EventDesc]) -> Result<Self, WriteError> {
        Self::with_endian(output, events, Endian::NATIVE)
    }

    /// Like [`Writer::new`] in another byte order.
    ///
    /// # Errors
    /// [`WriteError::Header`].
    pub fn with_endian(
        output: W,
        events: &[EventDesc],
        endian: Endian,
    ) -> Result<Self, WriteError> {
        let event_types = &[];
        Self::with_preamble(
            output,
            &Preamble {
                events,
                event_types,
                endian,
            },
        )
    }

    pub(crate) fn with_preamble(
        mut output: W,
        preamble: &Preamble<'_>,
    ) -> Result<Self, WriteError> {
        let (header, bytes) = preamble.encode();
        let mut written = output.seek(SeekFrom::Start(0)).map(|_| ());
        written = written.and_then(|()| output.write_all(&bytes));
        written.map_err(WriteError::Header)?;
        Ok(Self {
            data: PartWriter {
                output,
                section: header.data,
                endian: header.endian,
                ended: false,
            },
            header,
        })
    }

    /// Offset of the first record from the start of the file.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.data.section.offset
    }

    /// Bytes of records written so far.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.data.section.size
    }

    /// Size of the file up to the end of the last complete record, in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.data.file_bytes()
    }

    /// Appends complete records, each followed by its payload, if any. They are one write, unless the output accepts
    /// only a part of it.
    ///
    /// # Errors
    /// [`WriteError::Data`] if they could not all be written: [`Writer::finish`] truncates the file after the last
    /// complete record. Later calls fail with [`WriteError::Ended`].
    pub fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        self.data.write_data(records)
    }

    /// Appends a record and the pieces of its payload.
    ///
    /// # Errors
    /// [`WriteError::Data`] if they could not all be written: [`Writer::finish`] truncates the file before the
    /// record. Later calls fail with [`WriteError::Ended`].
    pub fn write_with_payload(
        &mut self,
        record: &[u8],
        payload: &[&[u8]],
    ) -> Result<(), WriteError> {
        self.data.write_with_payload(record, payload)
    }

    /// Appends the feature sections and completes the header. If the features cannot be written,
    /// the file is completed without them.
    ///
    /// # Errors
    /// [`WriteError::Header`]: then the file is like that of a killed recorder.
    pub fn finish(mut self, features: &FeatureSet) -> Result<(FinishedFile, W), WriteError> {
        let end = self.file_bytes();
        let (bitmap, bytes) = feature_sections(features, end, self.header.endian);
        let mut file_bytes = end + bytes.len() as u64;
        let features_lost = self.write_at(end, &bytes).err();
        if features_lost.is_none() {
            self.header.features = bitmap;
        } else {
            file_bytes = end;
        }
        self.complete(file_bytes).map_err(WriteError::Header)?;
        let finished = FinishedFile {
            data_bytes: self.data_bytes(),
            file_bytes,
            features_lost,
        };
        Ok((finished, self.data.output))
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.data.output.seek(SeekFrom::Start(offset))?;
        self.data.output.write_all(bytes)
    }

    /// Sets the size of the file, and writes the final header.
    fn complete(&mut self, file_bytes: u64) -> io::Result<()> {
        self.data.output.set_size(file_bytes)?;
        self.header.data = self.data.section;
        let header = self.header.encode();
        self.write_at(0, &header)?;
        self.data.output.flush()
    }
}

impl Preamble<'_> {
    /// Encodes everything before the data, with data size and feature bitmap 0, as in a killed
    /// recording.
    fn encode(&self) -> (FileHeader, Vec<u8>) {
        let endian = self.endian;
        let (encoded_attrs, encoded_attr_size) = encode_attrs(self.events, endian);
        let mut ids = Vec::new();
        let mut descriptions = Vec::new();
        for (event, attr) in self.events.iter().zip(encoded_attrs) {
            let section = Section {
                offset: (FileHeader::SIZE + ids.len()) as u64,
                size: (event.ids.len() * size_of::<u64>()) as u64,
            };
            let mut to = Encoder::new(&mut ids, endian);
            event.ids.iter().for_each(|id| to.u64(*id));
            descriptions.extend_from_slice(&attr);
            section.encode(&mut Encoder::new(&mut descriptions, endian));
        }
        let attrs = Section {
            offset: (FileHeader::SIZE + ids.len()) as u64,
            size: descriptions.len() as u64,
        };
        let mut event_types = Section::default();
        if !self.event_types.is_empty() {
            event_types.offset = attrs.end();
            event_types.size = self.event_types.len() as u64;
        }
        let header = FileHeader {
            endian,
            size: FileHeader::SIZE as u64,
            attr_size: (encoded_attr_size + Section::SIZE) as u64,
            attrs,
            data: Section {
                offset: attrs.end() + event_types.size,
                size: 0,
            },
            event_types,
            features: [0; 4],
        };
        let mut bytes = header.encode();
        for content in [&ids, &descriptions, self.event_types] {
            bytes.extend_from_slice(content);
        }
        (header, bytes)
    }
}

/// The feature bitmap, and the bytes at `offset`: the table of sections, then the sections.
fn feature_sections(features: &FeatureSet, offset: u64, endian: Endian) -> ([u64; 4], Vec<u8>) {
    let mut bitmap = [0; 4];
    let mut bytes = Vec::new();
    let table_size = features.sections().count() * Section::SIZE;
    let mut start = offset + table_size as u64;
    let mut to = Encoder::new(&mut bytes, endian);
    for (feature, content) in features.sections() {
        if let Some(word) = bitmap.get_mut(usize::from(feature.0 / 64)) {
            *word |= 1 << (feature.0 % 64);
        }
        let section = Section {
            offset: start,
            size: content.len() as u64,
        };
        section.encode(&mut to);
        start = section.end();
    }
    for (_, content) in features.sections() {
        to.bytes(content);
    }
    (bitmap, bytes)
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
