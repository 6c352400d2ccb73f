//! A recording that comes through a pipe: read as it comes, or gathered for the commands that need all
//! of it.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rperf_perfdata::{Error, FileHeader, PipeReader, Source};

use super::context::Context;
use super::error::CliError;
use super::input::{Input, Opened, foreign};
use super::spool::Spool;

/// Bytes that are gathered with one read.
const CHUNK: u64 = 1 << 20;

/// The reading end of a pipe, or what stands in its place.
pub(crate) struct Pipe(File);

impl Pipe {
    /// The standard input.
    pub(super) fn stdin() -> io::Result<Self> {
        let fd: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(fd.into()))
    }

    /// An open FIFO.
    pub(super) fn new(file: File) -> Self {
        Self(file)
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Source for Pipe {
    fn is_ready(&self) -> bool {
        rperf_sys::poll(&[self.0.as_fd()], 0)
            .is_ok_and(|ready| ready.iter().any(|ready| ready.readable || ready.closed))
    }
}

/// A stream of which the first bytes were read.
pub(crate) struct Stream {
    /// The name for messages.
    pub(crate) path: PathBuf,
    /// When the pipe was last written to, in seconds since 1970.
    pub(crate) changed: i64,
    first: Vec<u8>,
    input: Pipe,
}

impl Stream {
    /// Reads as much as a header of pipe mode takes, or all there is.
    pub(super) fn begin(path: PathBuf, mut input: Pipe) -> io::Result<Self> {
        let mut first = Vec::new();
        let mut header = (&mut input).take(FileHeader::PIPE_SIZE);
        header.read_to_end(&mut first)?;
        let changed = input.0.metadata().map_or(0, |metadata| metadata.mtime());
        Ok(Self {
            path,
            changed,
            first,
            input,
        })
    }

    /// Leaves pipe mode to be streamed; a file that comes this way is read to its end. What begins as
    /// neither is not read any further.
    pub(super) fn open(self, context: &Context) -> Result<Opened, CliError> {
        match FileHeader::decode(&self.first) {
            Ok(header) if header.is_pipe() => Ok(Opened::Stream(self)),
            Ok(_) | Err(Error::HeaderCut { .. }) => self.spool(context).map(Opened::Whole),
            Err(cause) => Err(foreign(&self.path, &cause)),
        }
    }

    /// The records, as they come.
    ///
    /// # Errors
    ///
    /// Status 255: it does not begin as a stream.
    pub(crate) fn reader(self) -> Result<PipeReader<Pipe>, CliError> {
        let path = self.path;
        PipeReader::new(self.first, self.input).map_err(|cause| foreign(&path, &cause))
    }

    /// Reads to the end.
    ///
    /// # Errors
    ///
    /// Status 255: reading fails, or there is no room for a long stream.
    pub(super) fn spool(mut self, context: &Context) -> Result<Input, CliError> {
        let shown = self.path.display();
        let failed = |what: String, error: io::Error| {
            CliError::failure(255, anyhow::Error::new(error).context(what))
        };
        let mut spool = Spool::new(context);
        let directory = spool.directory().display().to_string();
        let unstored = |error| failed(format!("failed to store {shown} in {directory}"), error);
        let mut chunk = self.first;
        while !chunk.is_empty() {
            spool.write_all(&chunk).map_err(unstored)?;
            chunk.clear();
            let mut next = (&mut self.input).take(CHUNK);
            let read = next.read_to_end(&mut chunk);
            read.map_err(|error| failed(format!("failed to read {shown}"), error))?;
        }
        let bytes = spool.finish().map_err(unstored)?;
        Ok(Input::new(self.path, self.changed, bytes))
    }
}
