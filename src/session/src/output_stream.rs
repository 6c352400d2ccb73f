//! The output of a recording: a file that is completed at the end, a pipe, or a file in the directory of a recording.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

use rperf_perfdata::{EventDesc, FeatureSet, PartWriter, PipeWriter, WriteError, Writer};

use crate::checkpoint::Checkpoint;
use crate::output::OutputFile;

/// An open output.
#[derive(Debug)]
pub(crate) enum OutputStream {
    /// A file or device, with the thread that updates the data size in its header, if it could be started.
    File(Writer<OutputFile>, Option<Checkpoint>),
    /// A file in the directory of a recording, with the records of one ring.
    Part(PartWriter<File>),
    /// Pipe mode.
    Pipe(PipeModeOutput),
}

/// An output in the format of pipe mode: a pipe or socket, or a file written like one.
#[derive(Debug)]
pub(crate) struct PipeModeOutput {
    writer: PipeWriter<Arc<File>>,
    /// Whether the output is a pipe or socket, whose reader may close it.
    is_pipe: bool,
}

impl OutputStream {
    /// Writes the header to the new file `to`, and starts the thread that updates the data size in it.
    pub(crate) fn file(to: OutputFile, events: &[EventDesc]) -> Result<Self, WriteError> {
        let duplicate = to.duplicate();
        let writer = Writer::new(to, events)?;
        let checkpoint = duplicate.ok().and_then(Checkpoint::begin);
        Ok(Self::File(writer, checkpoint))
    }

    /// Starts the output of pipe mode to `to` with the metadata of the recording.
    pub(crate) fn pipe(
        to: Arc<File>,
        events: &[EventDesc],
        features: &FeatureSet,
    ) -> Result<Self, WriteError> {
        let kind = to.metadata().map(|metadata| metadata.file_type());
        let is_pipe = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket());
        let writer = PipeWriter::new(to, events, features)?;
        Ok(Self::Pipe(PipeModeOutput { writer, is_pipe }))
    }

    /// Appends complete records.
    pub(crate) fn write_data(&mut self, records: &[u8]) -> Result<(), WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                writer.write_data(records)?;
                if let Some(checkpoint) = checkpoint {
                    checkpoint.set_size(writer.data_bytes());
                }
                Ok(())
            }
            Self::Part(part) => part.write_data(records),
            Self::Pipe(pipe) => pipe.writer.write_data(records),
        }
    }

    /// Appends a record and its payload, whose pieces are written in order.
    pub(crate) fn write_with_payload(
        &mut self,
        record: &[u8],
        payload: &[&[u8]],
    ) -> Result<(), WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                writer.write_with_payload(record, payload)?;
                if let Some(checkpoint) = checkpoint {
                    checkpoint.set_size(writer.data_bytes());
                }
                Ok(())
            }
            Self::Part(part) => part.write_with_payload(record, payload),
            Self::Pipe(pipe) => {
                pipe.writer.write_data(record)?;
                let mut pieces = payload.iter();
                pieces.try_for_each(|piece| pipe.writer.write_data(piece))
            }
        }
    }

    /// Returns the number of bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::File(writer, _) => writer.file_bytes(),
            Self::Part(part) => part.file_bytes(),
            Self::Pipe(pipe) => pipe.writer.bytes(),
        }
    }

    /// Returns the output's descriptor if it is a pipe or socket: poll(2) reports when the reader has closed it. `None` for other
    /// outputs.
    pub(crate) fn pipe_fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Pipe(pipe) if pipe.is_pipe => Some(pipe.writer.output().as_fd()),
            _ => None,
        }
    }

    /// Whether FINISHED_ROUND records are written. A file with the records of a single ring has none: they are in order.
    pub(crate) fn has_rounds(&self) -> bool {
        !matches!(self, Self::Part(_))
    }

    /// Completes the output. Only [`Self::File`] writes `features` here: in pipe mode, they were written at the start, and a part
    /// has none. If everything else could be written, an error of writing the features is returned in `Ok`.
    pub(crate) fn finish(self, features: &FeatureSet) -> Result<Option<io::Error>, WriteError> {
        match self {
            Self::File(writer, checkpoint) => {
                // Ends the thread, which writes to the header, too.
                drop(checkpoint);
                let (finished, _file) = writer.finish(features)?;
                Ok(finished.features_lost)
            }
            Self::Part(part) => {
                part.finish().map_err(WriteError::End)?;
                Ok(None)
            }
            Self::Pipe(mut pipe) => {
                pipe.writer.flush().map_err(WriteError::End)?;
                Ok(None)
            }
        }
    }
}
