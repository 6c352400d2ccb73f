//! An open folder and operations on single names in it.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, linkat, mkdirat, openat, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::found_file::{FoundFile, proc_link, read_all};
use crate::{Refusal, is_trusted_owner};

/// The type of a name in a folder; links aren't followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, socket or device.
    Other,
}

impl FileKind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// An open folder. Operations apply to this folder even if its path is replaced by another one. A name must be a single
/// component; others are refused with [`Refusal::Outside`].
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// Maximum depth of folders that [`Folder::remove_tree`] removes: a bound of its recursion, and of the folders it has open.
const MAX_DEPTH: u32 = 128;

/// Flags for opening folders: `O_PATH` does not require read permission.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens the folder at `path` and follows links: for paths chosen by the user.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        Self::open_from(CWD, path, path.to_owned(), OFlags::empty())
    }

    /// Opens a folder of the user, such as a cache in the home directory. If the last component is a
    /// link, the link must be owned by root or the user. The owner of the folder is not checked.
    ///
    /// # Errors
    /// [`Refusal::ForeignLink`], and errors of open(2).
    pub fn open_own(path: &Path) -> io::Result<Self> {
        if let Ok((parent, name)) = Self::parent_of(path)
            && let Some(found) = parent.stat(name)?
            && FileType::from_raw_mode(found.st_mode) == FileType::Symlink
            && !is_trusted_owner(found.st_uid)
        {
            return Err(Refusal::ForeignLink.into());
        }
        Self::open(path)
    }

    /// Like [`Folder::open_own`], but creates the folder and its parents if they don't exist.
    ///
    /// # Errors
    /// Errors of [`Folder::open_own`], and errors of mkdir(2).
    pub fn open_own_or_create(path: &Path, mode: u32) -> io::Result<Self> {
        match Self::open_own(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(mode).create(path)?;
                Self::open_own(path)
            }
            other => other,
        }
    }

    /// Opens the parent folder of `path`; also returns the last component.
    ///
    /// # Errors
    /// [`Refusal::Outside`] for a path without a last component, such as `/` or `..`; errors of open(2).
    pub fn parent_of(path: &Path) -> io::Result<(Self, &OsStr)> {
        let name = path.file_name().ok_or(Refusal::Outside)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((Self::open(parent)?, name))
    }

    /// The path used to open the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder at a relative path of plain names and `.`. No component may be a link.
    ///
    /// # Errors
    /// [`Refusal::Outside`], [`Refusal::NotFolder`], and errors of open(2).
    pub fn open_below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, |folder, name| folder.enter(name))
    }

    /// Like [`Folder::open_below`], but creates missing folders with this mode.
    ///
    /// # Errors
    /// Errors of [`Folder::open_below`], and errors of mkdir(2).
    pub fn create_below(&self, path: &Path, mode: u32) -> io::Result<Self> {
        self.walk(path, |folder, name| match folder.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&folder.descriptor, name, Mode::from_bits_truncate(mode)) {
                    // EXIST: another process created it first.
                    Ok(()) | Err(Errno::EXIST) => folder.enter(name),
                    Err(error) => Err(error.into()),
                }
            }
            other => other,
        })
    }

    /// Calls `step` for each name in `path`, with the folder that the previous call returned; returns the last folder.
    fn walk(
        &self,
        path: &Path,
        step: impl Fn(&Self, &OsStr) -> io::Result<Self>,
    ) -> io::Result<Self> {
        let mut at = self.duplicate()?;
        for part in path.components() {
            match part {
                Component::Normal(name) => at = step(&at, name)?,
                Component::CurDir => {}
                _ => return Err(Refusal::Outside.into()),
            }
        }
        Ok(at)
    }

    /// Opens a folder by name, which the caller has checked to be a single component; a link is rejected.
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        let folder = Self::open_from(
            self.descriptor.as_fd(),
            Path::new(name),
            path,
            OFlags::NOFOLLOW,
        );
        match folder {
            Err(error) if is_link_or_file(&error) => Err(Refusal::NotFolder.into()),
            other => other,
        }
    }

    /// Opens the folder at `relative` in `folder`; `path` is only what [`Folder::path`] returns.
    fn open_from(
        folder: BorrowedFd<'_>,
        relative: &Path,
        path: PathBuf,
        flags: OFlags,
    ) -> io::Result<Self> {
        let descriptor = openat(folder, relative, flags | FOLDER, Mode::empty())?;
        Ok(Self { descriptor, path })
    }

    fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            path: self.path.clone(),
        })
    }

    /// Creates and opens a folder of this name, which must not exist.
    ///
    /// # Errors
    /// Errors of mkdir(2) and open(2).
    pub fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        mkdirat(
            &self.descriptor,
            plain(name)?,
            Mode::from_bits_truncate(mode),
        )?;
        self.enter(name)
    }

    /// All names in the folder except `.` and `..`, sorted.
    ///
    /// # Errors
    /// Errors of open(2) and getdents(2).
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::new(self.readable()?)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// The type of this name; `None` if it doesn't exist.
    ///
    /// # Errors
    /// Errors of fstatat(2).
    pub fn kind(&self, name: &OsStr) -> io::Result<Option<FileKind>> {
        let found = self.stat(name)?;
        Ok(found.map(|found| FileKind::of(FileType::from_raw_mode(found.st_mode))))
    }

    /// Whether this name is a regular file.
    #[must_use]
    pub fn has_file(&self, name: &OsStr) -> bool {
        matches!(self.kind(name), Ok(Some(FileKind::File)))
    }

    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.descriptor, plain(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// The stat of the folder itself.
    pub(crate) fn stat_self(&self) -> io::Result<Stat> {
        Ok(fstat(&self.descriptor)?)
    }

    /// Finds the file of this name. A link is not followed, but is itself the file found.
    ///
    /// # Errors
    /// Errors of open(2) and fstat(2).
    pub fn find(&self, name: &OsStr) -> io::Result<FoundFile> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&self.descriptor, plain(name)?, flags, Mode::empty())?;
        FoundFile::new(found, self.path.join(name))
    }

    /// Opens the regular file of this name for reading.
    ///
    /// # Errors
    /// Errors of [`FoundFile::for_reading`].
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.find(name)?.for_reading()
    }

    /// Reads the regular file of this name, of at most `limit` bytes.
    ///
    /// # Errors
    /// Errors of [`Folder::open_file`]; [`Refusal::TooLarge`].
    pub fn read(&self, name: &OsStr, limit: u64) -> io::Result<Vec<u8>> {
        read_all(self.open_file(name)?, limit)
    }

    /// Creates a file of this name, which must not exist, for reading and writing.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(mode);
        Ok(openat(&self.descriptor, plain(name)?, flags, mode)?.into())
    }

    /// Creates an unnamed file in this folder (`O_TMPFILE`); `None` if that fails, for example
    /// because the file system doesn't support it.
    pub(crate) fn create_unnamed(&self, mode: u32) -> Option<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(mode);
        let file = openat(&self.descriptor, ".", flags, mode).ok()?;
        Some(file.into())
    }

    /// Links an open file, which may be unnamed, to this name, which must not exist.
    ///
    /// # Errors
    /// Errors of linkat(2); requires `/proc`.
    pub fn link_file(&self, file: &File, name: &OsStr) -> io::Result<()> {
        let (from, follow) = (proc_link(file), AtFlags::SYMLINK_FOLLOW);
        Ok(linkat(CWD, from, &self.descriptor, plain(name)?, follow)?)
    }

    /// Creates a symbolic link of this name, which must not exist.
    ///
    /// # Errors
    /// Errors of symlink(2).
    pub fn symlink(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.descriptor, plain(name)?)?)
    }

    /// The target of the symbolic link of this name.
    ///
    /// # Errors
    /// Errors of readlink(2).
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = readlinkat(&self.descriptor, plain(name)?, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Renames `from` to `to` within the folder. An existing `to` is replaced. Links aren't followed.
    ///
    /// # Errors
    /// Errors of rename(2).
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(
            &self.descriptor,
            plain(from)?,
            &self.descriptor,
            plain(to)?,
        )?)
    }

    /// Removes a name that is not a folder. A link is removed, not its target.
    ///
    /// # Errors
    /// Errors of unlink(2).
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, plain(name)?, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Errors of rmdir(2).
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(
            &self.descriptor,
            plain(name)?,
            AtFlags::REMOVEDIR,
        )?)
    }

    /// Removes a folder recursively, up to 128 levels deep; or a file. Links are removed, not their targets.
    ///
    /// # Errors
    /// Errors of unlink(2) and rmdir(2); `DirectoryNotEmpty` if the tree is deeper: then a part of it may have
    /// been removed.
    pub fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
        self.remove_levels(name, MAX_DEPTH)
    }

    fn remove_levels(&self, name: &OsStr, levels: u32) -> io::Result<()> {
        if self.kind(name)? != Some(FileKind::Folder) {
            return self.remove_file(name);
        }
        let levels = levels
            .checked_sub(1)
            .ok_or(io::ErrorKind::DirectoryNotEmpty)?;
        let folder = self.enter(name)?;
        for name in folder.names()? {
            folder.remove_levels(&name, levels)?;
        }
        self.remove_folder(name)
    }

    /// Takes the folder's lock (flock(2)), waiting for other processes. It is released when the
    /// returned file is dropped.
    ///
    /// # Errors
    /// Errors of open(2) and flock(2).
    pub fn lock(&self) -> io::Result<File> {
        let file = File::from(self.readable()?);
        file.lock()?;
        Ok(file)
    }

    /// Opens the folder again for reading: the descriptor opened with `O_PATH` can be neither listed nor locked.
    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, ".", flags, Mode::empty())?)
    }
}

/// Whether `error` is what open(2) with `O_DIRECTORY | O_NOFOLLOW` reports for links and files.
fn is_link_or_file(error: &io::Error) -> bool {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    is(Errno::LOOP) || is(Errno::NOTDIR)
}

/// Checks that a name has a single plain component.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    match bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        true => Err(Refusal::Outside.into()),
        false => Ok(name),
    }
}
