//! A recording that comes through a pipe: read as it comes, or gathered for the commands that need all
//! of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rperf_perfdata::{Error, FileHeader, PipeReader, Source};

use super::context::Context;
use super::error::CliError;
use super::input::{Bytes, Input, Opened, foreign};

/// Bytes of a stream that are gathered in memory; longer ones go to a temporary file.
const IN_MEMORY: usize = 64 << 20;

/// The reading end of a pipe, or what stands in its place.
pub(crate) struct Pipe(File);

impl Pipe {
    /// The standard input.
    pub(super) fn stdin() -> io::Result<Self> {
        let fd: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self(fd.into()))
    }

    /// A named pipe; waits for its writer.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
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
        let failed = |what: &str, error: io::Error| {
            CliError::failure(255, anyhow::Error::new(error).context(what.to_owned()))
        };
        let mut bytes = self.first;
        let most = (IN_MEMORY - bytes.len()) as u64;
        let read = (&mut self.input).take(most).read_to_end(&mut bytes);
        read.map_err(|error| failed(&format!("failed to read {shown}"), error))?;
        let bytes = if bytes.len() < IN_MEMORY {
            Bytes::Read(bytes)
        } else {
            let directory = context.var("TMPDIR").map_or("/tmp".into(), PathBuf::from);
            let what = format!("failed to store {shown} in {}", directory.display());
            let file = nameless(&directory).and_then(|mut file| {
                file.write_all(&bytes)?;
                drop(bytes);
                io::copy(&mut self.input.0, &mut file)?;
                Ok(file)
            });
            let mapped = file.and_then(|file| rperf_sys::map(&file));
            Bytes::Mapped(mapped.map_err(|error| failed(&what, error))?)
        };
        Ok(Input {
            path: self.path,
            changed: self.changed,
            bytes,
        })
    }
}

/// A file that has no name and goes with this process.
fn nameless(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let mut unnamed = options.clone();
    unnamed.custom_flags(libc::O_TMPFILE);
    if let Ok(file) = unnamed.open(directory) {
        return Ok(file);
    }
    // File systems without O_TMPFILE: named for a moment.
    let path = directory.join(format!("rperf-{}.stream", std::process::id()));
    let file = options.create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nameless_file_can_be_written_and_mapped() {
        let directory = std::env::temp_dir();
        let mut file = nameless(&directory).unwrap();
        file.write_all(b"gone").unwrap();
        assert_eq!(&*rperf_sys::map(&file).unwrap(), b"gone");
        assert_eq!(file.metadata().unwrap().nlink(), 0);
    }
}
