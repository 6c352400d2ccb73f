//! What a recording is written into: a file that is completed at its end, or a pipe that takes everything as it comes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use rperf_perfdata::{EventDesc, FeatureSet, PipeWriter, WriteError, Writer};

use crate::output::Destination;

/// A recording being written.
#[derive(Debug)]
pub(crate) enum Medium {
    /// A file, or a device that passes for one.
    File(Writer<Destination>),
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
            Self::File(writer) => writer.write_data(records),
            Self::Pipe(pipe) => pipe.writer.write_data(records),
        }
    }

    /// Makes a file readable as far as it is written.
    pub(crate) fn checkpoint(&mut self) -> Result<(), WriteError> {
        match self {
            Self::File(writer) => writer.checkpoint(),
            Self::Pipe(_) => Ok(()),
        }
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::File(writer) => writer.file_bytes(),
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

    /// Completes a file with its features; returns why these are missing, if they are.
    pub(crate) fn finish(self, features: &FeatureSet) -> Result<Option<io::Error>, WriteError> {
        match self {
            Self::File(writer) => {
                let (finished, _file) = writer.finish(features)?;
                Ok(finished.features_lost)
            }
            Self::Pipe(mut pipe) => {
                pipe.writer.flush().map_err(WriteError::Header)?;
                Ok(None)
            }
        }
    }
}
