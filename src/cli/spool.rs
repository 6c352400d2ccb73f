//! Bytes that are gathered before they are read: in memory, or in a nameless file where there are many.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use rperf_memory::reserve;
use rperf_safefs::nameless_file;
use rperf_sys::MappedFile;

use super::context::Context;

/// Bytes that are kept in memory; more of them go to the file.
const IN_MEMORY: usize = 64 << 20;

/// Bytes of a recording.
pub(crate) enum Bytes {
    /// A file's, mapped.
    Mapped(MappedFile),
    /// In memory.
    Read(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Takes bytes and gives them back in one run.
pub(crate) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
    directory: PathBuf,
}

impl Spool {
    /// An empty one.
    pub(crate) fn new(context: &Context) -> Self {
        Self {
            memory: Vec::new(),
            file: None,
            directory: context.var("TMPDIR").map_or("/tmp".into(), PathBuf::from),
        }
    }

    /// Where many bytes go, for messages.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether memory has room for more. Without it they go to the file early.
    fn has_room(&mut self, more: usize) -> bool {
        let held = self.memory.len();
        self.memory.capacity() - held >= more || reserve(&mut self.memory, more.max(held)).is_ok()
    }

    /// All bytes.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        match self.file {
            None => Ok(Bytes::Read(self.memory)),
            Some(file) => rperf_sys::map(&file).map(Bytes::Mapped),
        }
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if self.memory.len() + bytes.len() <= IN_MEMORY && self.has_room(bytes.len()) {
            self.memory.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let mut file = nameless_file(&self.directory)?;
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
    fn a_nameless_file_can_be_written_and_mapped() {
        let directory = std::env::temp_dir();
        let mut file = nameless_file(&directory).unwrap();
        file.write_all(b"gone").unwrap();
        assert_eq!(&*rperf_sys::map(&file).unwrap(), b"gone");
        assert_eq!(file.metadata().unwrap().nlink(), 0);
    }

    #[test]
    fn few_bytes_stay_in_memory_and_many_do_not() {
        let spool = || Spool {
            memory: Vec::new(),
            file: None,
            directory: std::env::temp_dir(),
        };
        let mut few = spool();
        few.write_all(b"few").unwrap();
        assert!(matches!(few.finish().unwrap(), Bytes::Read(bytes) if bytes == b"few"));
        let mut many = spool();
        let half = vec![7; IN_MEMORY / 2 + 1];
        many.write_all(&half).unwrap();
        many.write_all(&half).unwrap();
        let bytes = many.finish().unwrap();
        assert!(matches!(bytes, Bytes::Mapped(_)));
        assert_eq!(bytes.len(), 2 * half.len());
    }
}
