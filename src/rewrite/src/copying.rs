//! Copies of recordings, passed through a [`Pipeline`].

use std::borrow::Cow;
use std::io::Write;

use rperf_perfdata::feature::AuxIndexEntry;
use rperf_perfdata::{
    Error, EventDesc, FeatureSet, FinishedFile, Output, PerfData, PipeHead, PipeReader, PipeWriter,
    RecordAt, StreamInput, WriteError, Writer, encode_attr_record,
};
use rperf_wire::{Endian, RawRecord, RecordHeader, RecordKind};

use crate::pipeline::{Piece, PieceOutput, Pipeline};

/// Records without payloads are passed on in pieces of about this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The reason why a copy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The output could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A stream describes an event after other records, which may already belong to that event.
    #[error("the event in the record at offset {offset:#x} is described after other records")]
    LateEvent {
        /// Offset of the HEADER_ATTR record.
        offset: u64,
    },
    /// The metadata at the beginning of the stream are missing or cannot be read.
    #[error(transparent)]
    Read(#[from] Error),
}

/// The result of a copy.
#[derive(Debug, Default)]
pub struct CopySummary {
    /// Bytes written.
    pub bytes: u64,
    /// The error that ended the reading of the input, if any; the records after it were not copied.
    pub read_error: Option<Error>,
    /// The error that kept the feature sections from being written, if any.
    pub features_lost: Option<std::io::Error>,
}

/// Copies a file to a file; `events` replace those of the recording.
///
/// # Errors
/// [`CopyError::Write`]
pub fn copy_to_file<'a, W: Output>(
    data: &PerfData<'a>,
    events: &[EventDesc],
    mut pipeline: Pipeline<'a>,
    output: W,
) -> Result<CopySummary, CopyError> {
    let mut writer = data.begin_copy(output, events)?;
    let mut traces = Vec::new();
    let read_error = copy_records(data, &mut pipeline, &mut |piece| {
        note_trace(piece, &writer, data.endian(), &mut traces);
        writer.write_data(piece.bytes())
    })?;
    let mut features = features(data, events, &traces);
    pipeline.features(&mut features);
    let (finished, _) = writer.finish(&features)?;
    let FinishedFile {
        file_bytes,
        features_lost,
        ..
    } = finished;
    Ok(CopySummary {
        bytes: file_bytes,
        // `copy_records` does not see errors of the unpacking, in which records were decompressed, or merged from several files.
        read_error: read_error.or_else(|| data.unpack_error().cloned()),
        features_lost,
    })
}

/// Copies a file, or a stream that was read to its end, to a stream; `events` replace those of the recording.
///
/// # Errors
/// [`CopyError::Write`]
pub fn copy_to_stream<'a>(
    data: &PerfData<'a>,
    events: &[EventDesc],
    mut pipeline: Pipeline<'a>,
    output: &mut dyn Write,
) -> Result<CopySummary, CopyError> {
    let mut writer = if data.header().is_pipe() {
        // The metadata of a stream are records, which are copied with the others.
        PipeWriter::without_metadata(output, data.endian())?
    } else {
        // Without an index of AUX traces: a stream has none.
        let mut features = features(data, events, &[]);
        pipeline.features(&mut features);
        PipeWriter::with_endian(output, events, &features, data.endian())?
    };
    let mut attrs = AttrRewriter::new(data.events(), events, data.endian());
    let read_error = copy_records(data, &mut pipeline, &mut |piece| {
        writer.write_data(&attrs.rewrite(piece))
    })?;
    writer.flush().map_err(WriteError::End)?;
    Ok(CopySummary {
        bytes: writer.bytes(),
        // As in [`copy_to_file`], an error of the unpacking is added.
        read_error: read_error.or_else(|| data.unpack_error().cloned()),
        features_lost: None,
    })
}

/// If `piece`, which is written next, is an AUX trace, adds its position in the output to `traces`.
fn note_trace<W: Output>(
    piece: &Piece<'_>,
    writer: &Writer<W>,
    endian: Endian,
    traces: &mut Vec<AuxIndexEntry>,
) {
    let Piece::Special(bytes) = piece else { return };
    if let Some((raw, size)) = RawRecord::split(bytes, endian)
        && raw.kind == RecordKind::AUXTRACE
    {
        traces.push(AuxIndexEntry {
            file_offset: writer.file_bytes(),
            size: size as u64,
        });
    }
}

/// The feature sections of the copy.
fn features(data: &PerfData<'_>, events: &[EventDesc], traces: &[AuxIndexEntry]) -> FeatureSet {
    // `None` omits the sections that hold only for unchanged records.
    let data_offset = None;
    let mut features = data.features_for(data_offset);
    if events != data.events() {
        features.event_desc(events);
    }
    if !traces.is_empty() {
        features.aux_index(traces);
    }
    features
}

/// Passes all records through the pipeline to `output`; returns the error that ends the reading, if any.
fn copy_records<'a>(
    data: &PerfData<'a>,
    pipeline: &mut Pipeline<'a>,
    output: &mut dyn FnMut(&Piece<'_>) -> Result<(), WriteError>,
) -> Result<Option<Error>, WriteError> {
    // `rest` are the records that are not passed on yet; the loop has seen the first `length` bytes of them.
    let mut rest = data.data();
    let mut length = 0;
    let mut read_error = None;
    for record in data.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                read_error = Some(error);
                break;
            }
        };
        let size = RecordHeader::SIZE + record.raw.body.len() + record.payload.len();
        let is_special = !record.payload.is_empty() || PipeHead::is_metadata(record.raw.kind);
        if is_special || length + size > PIECE_BYTES {
            let (records, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            pipeline.push(Piece::Records(records.into()), output)?;
            (rest, length) = (after, 0);
        }
        if is_special {
            let (special, after) = rest.split_at_checked(size).unwrap_or((rest, &[]));
            pipeline.push(Piece::Special(special.into()), output)?;
            rest = after;
            continue;
        }
        length += size;
        if record.raw.kind == RecordKind::FINISHED_ROUND {
            let (records, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            pipeline.push(Piece::Records(records.into()), output)?;
            pipeline.end_round(output)?;
            (rest, length) = (after, 0);
        }
    }
    let records = rest.get(..length).unwrap_or_default();
    pipeline.push(Piece::Records(records.into()), output)?;
    pipeline.end(output)?;
    Ok(read_error)
}

/// Replaces the attrs in HEADER_ATTR records of a stream.
struct AttrRewriter<'e> {
    /// The events of the copy; empty if none is changed.
    events: &'e [EventDesc],
    endian: Endian,
    /// Index of the event that the next HEADER_ATTR record describes.
    next: usize,
}

impl<'e> AttrRewriter<'e> {
    fn new(before: &[EventDesc], events: &'e [EventDesc], endian: Endian) -> Self {
        let events = if before == events { &[][..] } else { events };
        Self {
            events,
            endian,
            next: 0,
        }
    }

    fn rewrite<'p>(&mut self, piece: &'p Piece<'_>) -> Cow<'p, [u8]> {
        let bytes = piece.bytes();
        if let Piece::Special(record) = piece
            && let Some((raw, _)) = RawRecord::split(record, self.endian)
            && raw.kind == RecordKind::HEADER_ATTR
            && let Some(event) = self.events.get(self.next)
        {
            self.next += 1;
            let mut changed = Vec::new();
            encode_attr_record(&mut changed, event, self.endian);
            return changed.into();
        }
        bytes.into()
    }
}

/// A stream whose metadata at the beginning were read.
pub struct StreamCopy<R> {
    reader: PipeReader<R>,
    /// The metadata records at the beginning.
    metadata: Vec<Vec<u8>>,
    /// The first record that is not metadata; empty if there is none.
    first: Vec<u8>,
}

impl<R: StreamInput> StreamCopy<R> {
    /// Reads the metadata at the beginning of a stream.
    ///
    /// # Errors
    /// [`CopyError::Read`]
    pub fn begin(mut reader: PipeReader<R>) -> Result<Self, CopyError> {
        let endian = reader.endian();
        let mut metadata = Vec::new();
        let mut first = Vec::new();
        while let Some(record) = reader.next_record()? {
            let bytes = encoded(&record, endian);
            let position = record.position;
            let size = bytes.len() as u64;
            match PipeHead::is_metadata(record.raw.kind) {
                true => metadata.push(bytes),
                false => first = bytes,
            }
            reader.release(position + size);
            if !first.is_empty() {
                break;
            }
        }
        if reader.head().events().is_empty() {
            return Err(Error::NoAttrRecord.into());
        }
        Ok(Self {
            reader,
            metadata,
            first,
        })
    }

    /// The metadata at the beginning.
    pub fn head(&self) -> &PipeHead<'static> {
        self.reader.head()
    }

    /// Copies the stream; `events` replace those described at its beginning.
    ///
    /// # Errors
    /// [`CopyError::Write`], [`CopyError::LateEvent`]
    pub fn copy(
        self,
        events: &[EventDesc],
        pipeline: Pipeline<'_>,
        output: &mut dyn Write,
    ) -> Result<CopySummary, CopyError> {
        let Self {
            mut reader,
            metadata,
            first,
        } = self;
        let endian = reader.endian();
        let mut writer = PipeWriter::without_metadata(output, endian)?;
        let before = reader.head().events().to_vec();
        let mut attrs = AttrRewriter::new(&before, events, endian);
        let mut feed = StreamFeed {
            pipeline,
            records: Vec::new(),
            output: &mut |piece| writer.write_data(&attrs.rewrite(piece)),
        };
        for record in metadata {
            feed.special(record)?;
        }
        if let Some((raw, size)) = RawRecord::split(&first, endian) {
            let has_payload = first.len() > size;
            feed.push(raw.kind, has_payload, first)?;
        }
        let read_error = feed.copy(&mut reader)?;
        feed.end()?;
        writer.flush().map_err(WriteError::End)?;
        Ok(CopySummary {
            bytes: writer.bytes(),
            read_error,
            features_lost: None,
        })
    }
}

/// Passes the records of a stream through a pipeline.
struct StreamFeed<'p, 'o> {
    pipeline: Pipeline<'p>,
    /// Records that were not passed on yet.
    records: Vec<u8>,
    output: PieceOutput<'o>,
}

impl StreamFeed<'_, '_> {
    /// Passes on all records that are left in the stream; returns the error that ends the reading, if any.
    fn copy<R: StreamInput>(
        &mut self,
        reader: &mut PipeReader<R>,
    ) -> Result<Option<Error>, CopyError> {
        let endian = reader.endian();
        loop {
            // Complete records are passed on before waiting for more input.
            if self.records.len() >= PIECE_BYTES || !reader.is_ready() {
                self.flush()?;
            }
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            };
            let (position, kind) = (record.position, record.raw.kind);
            if kind == RecordKind::HEADER_ATTR {
                return Err(CopyError::LateEvent { offset: position });
            }
            let has_payload = !record.payload.is_empty();
            let bytes = encoded(&record, endian);
            reader.release(position + bytes.len() as u64);
            self.push(kind, has_payload, bytes)?;
        }
    }

    /// Passes on, or keeps, a record with its payload.
    fn push(
        &mut self,
        kind: RecordKind,
        has_payload: bool,
        bytes: Vec<u8>,
    ) -> Result<(), WriteError> {
        match PipeHead::is_metadata(kind) || has_payload {
            true => self.special(bytes),
            false => self.record(kind, &bytes),
        }
    }

    /// Passes on a record that is a [`Piece::Special`].
    fn special(&mut self, record: Vec<u8>) -> Result<(), WriteError> {
        self.flush()?;
        self.pipeline
            .push(Piece::Special(record.into()), self.output)
    }

    /// Keeps any other record; at the end of a round, passes on the kept ones.
    fn record(&mut self, kind: RecordKind, bytes: &[u8]) -> Result<(), WriteError> {
        self.records.extend_from_slice(bytes);
        if kind == RecordKind::FINISHED_ROUND {
            self.flush()?;
            self.pipeline.end_round(self.output)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let records = std::mem::take(&mut self.records);
        self.pipeline
            .push(Piece::Records(records.into()), self.output)
    }

    fn end(mut self) -> Result<(), WriteError> {
        self.flush()?;
        self.pipeline.end(self.output)
    }
}

/// The bytes of a record with its payload.
fn encoded(record: &RecordAt<'_>, endian: Endian) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(RecordHeader::SIZE + record.raw.body.len());
    record.raw.encode(endian, &mut bytes);
    bytes.extend_from_slice(record.payload);
    bytes
}

#[cfg(test)]
mod tests {
    use rperf_wire::{Attr, AuxTrace, Misc, UserRecord};

    use super::*;
    use crate::pipeline::Transform;

    /// Drops all records, except special ones.
    struct OnlySpecial;

    impl Transform for OnlySpecial {
        fn rewrite(&mut self, _records: &[u8], _to: &mut Vec<u8>) {}
    }

    #[test]
    fn a_trace_right_after_the_metadata_is_one_record_with_its_payload() {
        let endian = Endian::NATIVE;
        let event = EventDesc::new(Attr::default(), Vec::new());
        // The file header, then the metadata: one HEADER_ATTR record.
        let mut head = Vec::new();
        PipeWriter::without_metadata(&mut head, endian).expect("a header");
        let header_size = head.len();
        encode_attr_record(&mut head, &event, endian);
        let payload = [0xff; 16];
        let trace = UserRecord::AuxTrace(AuxTrace {
            size: payload.len() as u64,
            offset: 0,
            reference: 0,
            index: 0,
            tid: u32::MAX,
            cpu: u32::MAX,
        });
        let mut stream = head.clone();
        RecordHeader::encode_record(trace.kind(), Misc::default(), &mut stream, endian, |to| {
            trace.encode_body(to);
        });
        stream.extend(payload);
        // A reader gets the file header separately.
        let (header, records) = stream.split_at(header_size);
        let reader = PipeReader::new(header.to_vec(), records).expect("a stream");
        let copy = StreamCopy::begin(reader).expect("an event");
        let mut pipeline = Pipeline::new();
        pipeline.add(OnlySpecial);
        let mut output = Vec::new();
        let copied = copy.copy(&[event], pipeline, &mut output);
        assert!(copied.expect("a copy").read_error.is_none());
        assert_eq!(output, stream);
    }
}
