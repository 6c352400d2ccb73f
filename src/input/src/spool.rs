//! Bytes that are buffered before they are read: in memory, or in an unnamed temporary file if there are many or memory
//! is short.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rperf_memory::reserve;
use rperf_safefs::unnamed_file;
use rperf_sys::MappedFile;

/// The maximum number of bytes kept in memory; beyond it the file is used.
const IN_MEMORY: usize = 64 << 20;

/// The bytes of a recording.
#[derive(Debug)]
pub enum RecordingBytes {
    /// A mapped file.
    Mapped(MappedFile),
    /// Bytes in memory.
    Read(Vec<u8>),
}

impl Deref for RecordingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Collects bytes and returns them as one slice.
#[derive(Debug)]
pub struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    directory: PathBuf,
}

impl Spool {
    /// Creates an empty spool, whose file is created in `directory`.
    #[must_use]
    pub fn new(directory: PathBuf) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            directory,
        }
    }

    /// Returns the directory of the temporary file, for messages.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Allocates memory for `more` bytes; returns `false` if that fails: the file is then used although
    /// [`IN_MEMORY`] is not reached.
    fn make_room(&mut self, more: usize) -> bool {
        let held = self.memory.len();
        // At least doubles the memory, so that the bytes are seldom copied.
        self.memory.capacity() - held >= more || reserve(&mut self.memory, more.max(held)).is_ok()
    }

    /// Returns all bytes.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn finish(self) -> io::Result<RecordingBytes> {
        match self.file {
            None => Ok(RecordingBytes::Read(self.memory)),
            Some(file) => rperf_sys::map_open_file(&file).map(RecordingBytes::Mapped),
        }
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if self.memory.len() + bytes.len() <= IN_MEMORY && self.make_room(bytes.len()) {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let mut file = unnamed_file(&self.directory)?;
        file.write_all(&std::mem::take(&mut self.memory))?;
        self.file.insert(file).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn an_unnamed_file_can_be_written_and_mapped() {
        let directory = std::env::temp_dir();
        let mut file = unnamed_file(&directory).unwrap();
        file.write_all(b"gone").unwrap();
        assert_eq!(&*rperf_sys::map_open_file(&file).unwrap(), b"gone");
        assert_eq!(file.metadata().unwrap().nlink(), 0);
    }

    #[test]
    fn few_bytes_stay_in_memory_and_many_do_not() {
        let spool = || Spool::new(std::env::temp_dir());
        let mut few = spool();
        few.write_all(b"few").unwrap();
        assert!(matches!(few.finish().unwrap(), RecordingBytes::Read(bytes) if bytes == b"few"));
        let mut many = spool();
        let half = vec![7; IN_MEMORY / 2 + 1];
        many.write_all(&half).unwrap();
        many.write_all(&half).unwrap();
        let bytes = many.finish().unwrap();
        assert!(matches!(bytes, RecordingBytes::Mapped(_)));
        assert_eq!(bytes.len(), 2 * half.len());
    }
}
