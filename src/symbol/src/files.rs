//! Where bytes come from: the crate asks a provider and never opens a file itself.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build_id::BuildId;

/// Gives the bytes of files by path: the disk, an archive, or a map in a test.
pub trait Files: Send + Sync {
    /// The whole content of the regular file at `path`.
    ///
    /// # Errors
    ///
    /// Whatever the provider meets: `NotFound`, `PermissionDenied`, or that `path` is no regular file.
    fn read(&self, path: &Path) -> io::Result<FileBytes>;

    /// The same content to be read from start to end: for files that are made up while they are read, and needn't be
    /// held as a whole.
    ///
    /// # Errors
    ///
    /// Those of [`Files::read`].
    fn open(&self, path: &Path) -> io::Result<Box<dyn io::Read>> {
        Ok(Box::new(io::Cursor::new(self.read(path)?)))
    }

    /// Fills `into` with what stands from `offset` on, for files that are too large to be read: returns how many bytes
    /// there were.
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

    /// What is in the folder at `path`, in no order.
    ///
    /// # Errors
    ///
    /// Whatever the provider meets; providers of single files know no folders.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let _ = path;
        Err(io::ErrorKind::NotFound.into())
    }

    /// The vdso that this machine's kernel maps into processes of 32-bit x86, if it runs such.
    fn vdso32(&self) -> Option<FileBytes> {
        None
    }

    /// The content of a file that is believed only if it belongs to root or the current user; `None` for one that belongs to
    /// somebody else. A perf map in `/tmp` could be anybody's. The provider on disk also refuses files that are too large.
    ///
    /// # Errors
    ///
    /// Those of [`Files::read`].
    fn read_trusted(&self, path: &Path) -> io::Result<Option<FileBytes>> {
        self.read(path).map(Some)
    }
}

/// Gives files by build-id, from elsewhere: debuginfod servers, or a list in a test.
pub trait Servers: fmt::Debug + Send + Sync {
    /// The path at which the provider of files now has what is wanted; `None` where nobody has it.
    fn fetch(&self, wanted: &Wanted<'_>) -> Option<PathBuf>;
}

/// A file that is known by the build-id in it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// What must be in it.
    pub build_id: &'a BuildId,
    /// Which of the files with this build-id.
    pub part: Part,
    /// The object's name in the recording, for those who watch.
    pub object: &'a Path,
}

/// The files that an object may be split into, all of one build-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Symbols and debug information, without code.
    Debuginfo,
    /// What was executed, perhaps stripped.
    Executable,
}

/// A cheaply cloned owner of a file's bytes: a mapping, or a vector.
#[derive(Clone)]
pub struct FileBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl FileBytes {
    /// Shares `owner`, which holds the bytes for as long as any clone lives.
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

/// Files held in memory, for tests and for bytes that came from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    files: BTreeMap<PathBuf, FileBytes>,
}

impl MemoryFiles {
    /// No files at all.
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
        let below = self.files.keys().filter_map(|file| {
            let name = file.strip_prefix(path).ok()?.components().next()?;
            Some(path.join(name))
        });
        let mut found: Vec<PathBuf> = below.collect();
        found.dedup();
        Ok(found)
    }
}
