//! What a recording is written into: a file that is completed at its end, or a pipe that takes everything as it comes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use rperf_perfdata::{EventDesc, FeatureSet, PartWriter, PipeWriter, WriteError, Writer};

use crate::checkpoint::Checkpoint;
use crate::output::Destination;

/// A recording being written.
#[derive(Debug)]
pub(crate) enum Medium {
    /// A file, or a device that passes for one, and who keeps its header true meanwhile.
    File(Writer<Destination>, Option<Checkpoint>),
    /// A part of a directory: the records of one ring.
    Part(PartWriter<File>),
    /// Pipe mode.
    Pipe(Pipe),
}

/// The writing end of a pipe, or what stands in its place.
#[derive(Debug)]
pub(crate) struct Pipe {
    writer: PipeWriter<Arc<File>>,
    /// Whether there is a reader that can go away.
    is_pipe: bool,
}

impl Medium {
    /// A file, begun with its header.
    pub(crate) fn file(to: Destination, events: &[EventDesc]) -> Result<Self, WriteError> {
        let beside = to.file();
        let writer = Writer::new(to, events)?;
        Ok(Self::File(writer, beside.ok().and_then(Checkpoint::begin)))
    }

    /// A stream into `to`, begun with all that describes the recording.
    pub(crate) fn pipe(
        to: Arc<File>,
        events: &[EventDesc],
        features: &FeatureSet,
    ) -> Result<Self, WriteError> {
        let kind = to.metadata().map(|metadata| metadata.file_type());
        let is_pipe = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket());
        let writer = PipeWriter::new(to, events, features)?;
        Ok(Self::Pipe(Pipe { writer, is_pipe }))
    }

    /// Appends whole records.
    pub(crate) fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                writer.write_data(records)?;
                if let Some(checkpoint) = checkpoint {
                    checkpoint.note(writer.data_bytes());
                }
                Ok(())
            }
            Self::Part(part) => part.write_data(records),
            Self::Pipe(pipe) => pipe.writer.write_data(records),
        }
    }

    /// Appends a record and the bytes that follow it and belong to it, in pieces.
    pub(crate) fn write_followed(
        &mut self,
        record: &[u8],
        payload: &[&[u8]],
    ) -> Result<(), WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                writer.write_followed(record, payload)?;
                if let Some(checkpoint) = checkpoint {
                    checkpoint.note(writer.data_bytes());
                }
                Ok(())
            }
            Self::Part(part) => part.write_followed(record, payload),
            Self::Pipe(pipe) => {
                pipe.writer.write_data(record)?;
                let mut pieces = payload.iter();
                pieces.try_for_each(|piece| pipe.writer.write_data(piece))
            }
        }
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::File(writer, _) => writer.file_bytes(),
            Self::Part(part) => part.file_bytes(),
            Self::Pipe(pipe) => pipe.writer.bytes(),
        }
    }

    /// A descriptor that tells when the reader of a pipe has gone.
    pub(crate) fn reader(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Pipe(pipe) if pipe.is_pipe => Some(pipe.writer.output().as_fd()),
            _ => None,
        }
    }

    /// Whether rounds are marked: the records of one ring are in order without.
    pub(crate) fn has_rounds(&self) -> bool {
        !matches!(self, Self::Part(_))
    }

    /// Completes a file with its features; returns why these are missing, if they are.
    pub(crate) fn finish(self, features: &FeatureSet) -> Result<Option<io::Error>, WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                drop(checkpoint);
                let (finished, _file) = writer.finish(features)?;
                Ok(finished.features_lost)
            }
            Self::Part(part) => {
                part.finish().map_err(WriteError::Header)?;
                Ok(None)
            }
            Self::Pipe(mut pipe) => {
                pipe.writer.flush().map_err(WriteError::Header)?;
                Ok(None)
            }
        }
    }
}
