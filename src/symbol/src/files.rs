//! Access to file contents: the crate uses a provider and never opens files itself.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build_id::BuildId;

/// Reads files by path from disk, an archive, or a map in a test.
pub trait Files: Send + Sync {
    /// Reads the whole regular file at `path`.
    ///
    /// # Errors
    ///
    /// Errors of the provider: `NotFound`, `PermissionDenied`, or an error for a `path` that is not a
    /// regular file.
    fn read(&self, path: &Path) -> io::Result<FileBytes>;

    /// Opens the file for sequential reading: for files that are generated while being read and
    /// need not be in memory as a whole. By default, it is read by [`Files::read`].
    ///
    /// # Errors
    ///
    /// Those of [`Files::read`].
    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>> {
        Ok(Box::new(io::Cursor::new(self.read(path)?)))
    }

    /// Reads into `into` from `offset` on, for files too large to be read as a whole; returns the
    /// number of bytes read. By default, each call reads the whole file by [`Files::read`].
    ///
    /// # Errors
    ///
    /// Those of [`Files::read`].
    fn read_at(&self, path: &Path, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.read(path)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let count = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(count)
    }

    /// Returns the paths of the entries of the directory at `path`, in any order.
    ///
    /// # Errors
    ///
    /// Errors of the provider; by default `NotFound`.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let _ = path;
        Err(io::ErrorKind::NotFound.into())
    }

    /// The vdso of 32-bit x86 processes on this machine; `None` if its kernel does not support them. By default `None`.
    fn vdso32(&self) -> Option<FileBytes> {
        None
    }

    /// Reads a file from a directory where any user can create files, for example a perf map in `/tmp`. Returns `None` if
    /// the file belongs neither to root nor to the current user. By default, all files are trusted.
    ///
    /// # Errors
    ///
    /// Those of [`Files::read`]. The provider of files on disk also refuses large sparse files.
    fn read_trusted(&self, path: &Path) -> io::Result<Option<FileBytes>> {
        self.read(path).map(Some)
    }
}

/// Fetches files by build-id from elsewhere: debuginfod servers, or a list in a test.
pub trait Servers: fmt::Debug + Send + Sync {
    /// Fetches a file and returns its path for [`Files`]; `None` if it could not be fetched.
    fn fetch(&self, wanted: &FileRequest<'_>) -> Option<PathBuf>;
}

/// A file identified by its build-id.
#[derive(Debug, Clone, Copy)]
pub struct FileRequest<'a> {
    /// The build-id of the file.
    pub build_id: &'a BuildId,
    /// Which of the files with this build-id.
    pub part: FilePart,
    /// The object's name in the recording, for progress messages.
    pub object: &'a Path,
}

/// The files that an object may be split into, all with the same build-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilePart {
    /// Symbols and debug information, without code.
    Debuginfo,
    /// The executed file, possibly stripped.
    Executable,
}

/// A cheaply cloneable owner of a file's bytes: a mapping, or a vector.
#[derive(Clone)]
pub struct FileBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl FileBytes {
    /// Shares `owner`, which keeps the bytes until the last clone is dropped.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileBytes({} bytes)", self.len())
    }
}

/// Files in memory, for tests and for bytes from other sources.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    files: BTreeMap<PathBuf, FileBytes>,
}

impl MemoryFiles {
    /// Creates an empty provider.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces the file at `path`.
    pub fn insert(&mut self, path: impl Into<PathBuf>, bytes: impl Into<FileBytes>) -> &mut Self {
        self.files.insert(path.into(), bytes.into());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        self.files
            .get(path)
            .cloned()
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let entries = self.files.keys().filter_map(|file| {
            let name = file.strip_prefix(path).ok()?.components().next()?;
            Some(path.join(name))
        });
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.dedup();
        Ok(entries)
    }
}
