//! A recording read from a pipe: streamed, or buffered if it is not in pipe mode or the command needs all of it.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rperf_perfdata::{Error, FileHeader, PipeReader, StreamInput};

use super::context::Context;
use super::error::CliError;
use super::input::{Input, OpenedInput, invalid_recording};

/// Bytes per read when buffering.
const CHUNK: u64 = 1 << 20;

/// The read end of a pipe, or a file in its place.
pub(crate) struct PipeInput(File);

impl PipeInput {
    /// Returns the standard input.
    pub(super) fn stdin() -> io::Result<Self> {
        let fd: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(fd.into()))
    }

    /// Wraps an open FIFO.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Read for PipeInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl StreamInput for PipeInput {
    fn is_ready(&self) -> bool {
        let timeout_millis = 0;
        rperf_sys::poll(&[self.0.as_fd()], timeout_millis)
            .is_ok_and(|ready| ready.iter().any(|ready| ready.readable || ready.closed))
    }
}

/// A stream whose first bytes were read.
pub(crate) struct RecordingStream {
    /// The name for messages.
    pub(crate) path: PathBuf,
    /// Modification time of the input, in seconds since 1970; 0 if unknown.
    pub(crate) mtime: i64,
    first: Vec<u8>,
    input: PipeInput,
}

impl RecordingStream {
    /// Returns the stream after reading at most the size of a pipe-mode header.
    pub(super) fn begin(path: PathBuf, mut input: PipeInput) -> io::Result<Self> {
        let mut first = Vec::new();
        let mut header = (&mut input).take(FileHeader::PIPE_SIZE);
        header.read_to_end(&mut first)?;
        let mtime = input.0.metadata().map_or(0, |metadata| metadata.mtime());
        Ok(Self {
            path,
            mtime,
            first,
            input,
        })
    }

    /// Whether the first bytes look like text rather than a recording.
    pub(super) fn is_text(&self) -> bool {
        let is_foreign = matches!(FileHeader::decode(&self.first), Err(Error::Magic { .. }));
        is_foreign && !self.first.contains(&0)
    }

    /// Returns a reader of all bytes of the stream, including those already read.
    pub(super) fn into_text(self) -> impl Read {
        io::Cursor::new(self.first).chain(self.input)
    }

    /// Opens the recording. In pipe mode its records are not read yet; otherwise it is read to its end. Input of another format
    /// is refused without reading more of it.
    pub(super) fn open(self, context: &Context) -> Result<OpenedInput, CliError> {
        match FileHeader::decode(&self.first) {
            Ok(header) if header.is_pipe() => Ok(OpenedInput::Stream(self)),
            // Not in pipe mode: the header is longer than the first bytes, so decoding never returns `Ok`. If the stream ends
            // within the header, the recording is refused after it was read.
            Ok(_) | Err(Error::HeaderTruncated { .. }) => {
                self.spool(context).map(OpenedInput::Whole)
            }
            Err(cause) => Err(invalid_recording(&self.path, &cause)),
        }
    }

    /// Returns a reader of the records as they arrive.
    ///
    /// # Errors
    ///
    /// Status 255: the header is not that of pipe mode.
    pub(crate) fn reader(self) -> Result<PipeReader<PipeInput>, CliError> {
        let path = self.path;
        PipeReader::new(self.first, self.input).map_err(|cause| invalid_recording(&path, &cause))
    }

    /// Reads the stream to its end, and stores it in a spool: in memory or, if it is long, in a temporary file.
    ///
    /// # Errors
    ///
    /// Status 255: reading fails, or the bytes cannot be stored.
    pub(super) fn spool(mut self, context: &Context) -> Result<Input, CliError> {
        let name = self.path.display();
        let failed = |what: String, error: io::Error| {
            CliError::failure(255, anyhow::Error::new(error).context(what))
        };
        let mut spool = context.spool();
        let directory = spool.directory().display().to_string();
        let unstored = |error| failed(format!("failed to store {name} in {directory}"), error);
        let mut chunk = self.first;
        while !chunk.is_empty() {
            spool.write_all(&chunk).map_err(unstored)?;
            chunk.clear();
            let mut next = (&mut self.input).take(CHUNK);
            let read = next.read_to_end(&mut chunk);
            read.map_err(|error| failed(format!("failed to read {name}"), error))?;
        }
        let bytes = spool.finish().map_err(unstored)?;
        Ok(Input::new(self.path, self.mtime, bytes))
    }
}
