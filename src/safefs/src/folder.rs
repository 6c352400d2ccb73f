//! A folder that is held open, and single names in it.

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

use crate::opened::{Opened, descriptor, read_all};
use crate::{Refusal, is_users};

/// What a name in a folder is; a link isn't followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, socket or device.
    Other,
}

impl Kind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

/// An open folder. Whatever is done to its names is done there, also when another folder takes its path meanwhile.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// Folders in each other that [`Folder::remove_tree`] removes.
const MAX_DEPTH: u32 = 8;

/// A folder that may be entered but not read will do, too.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens the folder at `path`, through links: for paths that the user chose.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        Self::open_from(CWD, path, path.to_owned(), OFlags::empty())
    }

    /// Opens the folder at `path` that belongs to the user by its purpose, such as a cache in the home: the last part may be a
    /// link if that is root's or the user's own.
    ///
    /// # Errors
    /// [`Refusal::ForeignLink`], and what open(2) reports.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        if let Ok((parent, name)) = Self::of(path)
            && let Some(found) = parent.stat(name)?
            && FileType::from_raw_mode(found.st_mode) == FileType::Symlink
            && !is_users(found.st_uid)
        {
            return Err(Refusal::ForeignLink.into());
        }
        Self::open(path)
    }

    /// [`Folder::open_own`], which creates the folder with its parents if it doesn't exist.
    ///
    /// # Errors
    /// Those of [`Folder::open_own`], and what mkdir(2) reports.
    pub fn open_own_or_create(path: &Path, mode: u32) -> io::Result<Self> {
        match Self::open_own(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(mode).create(path)?;
                Self::open_own(path)
            }
            opened => opened,
        }
    }

    /// The folder that `path` is in, and its name there.
    ///
    /// # Errors
    /// A path without a last name, such as `/` or `..`; what open(2) reports.
    pub fn of(path: &Path) -> io::Result<(Self, &OsStr)> {
        let name = path.file_name().ok_or(Refusal::Outside)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((Self::open(parent)?, name))
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the folder at a path of plain names below this one. None of them may be a link.
    ///
    /// # Errors
    /// [`Refusal::Outside`], [`Refusal::NotFolder`], and what open(2) reports.
    pub fn below(&self, path: &Path) -> io::Result<Self> {
        self.walk(path, |folder, name| folder.enter(name))
    }

    /// [`Folder::below`], which creates the folders that are missing with this mode.
    ///
    /// # Errors
    /// Those of [`Folder::below`], and what mkdir(2) reports.
    pub fn create_below(&self, path: &Path, mode: u32) -> io::Result<Self> {
        self.walk(path, |folder, name| match folder.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&folder.descriptor, name, Mode::from_bits_truncate(mode)) {
                    // Another process was faster.
                    Ok(()) | Err(Errno::EXIST) => folder.enter(name),
                    Err(error) => Err(error.into()),
                }
            }
            other => other,
        })
    }

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

    /// The folder of this name, which may be no link.
    fn enter(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        let opened = Self::open_from(
            self.descriptor.as_fd(),
            Path::new(name),
            path,
            OFlags::NOFOLLOW,
        );
        match opened {
            Err(error) if is_link_or_file(&error) => Err(Refusal::NotFolder.into()),
            other => other,
        }
    }

    fn open_from(
        folder: BorrowedFd<'_>,
        from: &Path,
        path: PathBuf,
        flags: OFlags,
    ) -> io::Result<Self> {
        let descriptor = openat(folder, from, flags | FOLDER, Mode::empty())?;
        Ok(Self { descriptor, path })
    }

    fn duplicate(&self) -> io::Result<Self> {
        Ok(Self {
            descriptor: self.descriptor.try_clone()?,
            path: self.path.clone(),
        })
    }

    /// Creates a folder of this name, which must be free, and opens it.
    ///
    /// # Errors
    /// What mkdir(2) and open(2) report.
    pub fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        mkdirat(
            &self.descriptor,
            plain(name)?,
            Mode::from_bits_truncate(mode),
        )?;
        self.enter(name)
    }

    /// All names in it but `.` and `..`, sorted.
    ///
    /// # Errors
    /// What open(2) and getdents(2) report.
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

    /// What this name is, if there is such a name.
    ///
    /// # Errors
    /// What fstatat(2) reports.
    pub fn kind(&self, name: &OsStr) -> io::Result<Option<Kind>> {
        let found = self.stat(name)?;
        Ok(found.map(|found| Kind::of(FileType::from_raw_mode(found.st_mode))))
    }

    /// Whether this name is a regular file.
    #[must_use]
    pub fn has_file(&self, name: &OsStr) -> bool {
        matches!(self.kind(name), Ok(Some(Kind::File)))
    }

    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match statat(&self.descriptor, plain(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    pub(crate) fn own_stat(&self) -> io::Result<Stat> {
        Ok(fstat(&self.descriptor)?)
    }

    /// Finds what has this name, without following a link.
    ///
    /// # Errors
    /// What open(2) and fstat(2) report.
    pub fn find(&self, name: &OsStr) -> io::Result<Opened> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&self.descriptor, plain(name)?, flags, Mode::empty())?;
        Opened::new(found, self.path.join(name))
    }

    /// Opens the regular file of this name for reading.
    ///
    /// # Errors
    /// Those of [`Opened::for_reading`].
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        self.find(name)?.for_reading()
    }

    /// Reads the regular file of this name, of at most `limit` bytes.
    ///
    /// # Errors
    /// Those of [`Folder::open_file`]; [`Refusal::TooLarge`].
    pub fn read(&self, name: &OsStr, limit: u64) -> io::Result<Vec<u8>> {
        read_all(self.open_file(name)?, limit)
    }

    /// Creates a file of this name, which must be free, for reading and writing.
    ///
    /// # Errors
    /// What open(2) reports.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(mode);
        Ok(openat(&self.descriptor, plain(name)?, flags, mode)?.into())
    }

    /// A file in this folder that has no name (`O_TMPFILE`), if the file system has such files.
    pub(crate) fn create_nameless(&self, mode: u32) -> Option<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(mode);
        let file = openat(&self.descriptor, ".", flags, mode).ok()?;
        Some(file.into())
    }

    /// Gives an open file this name, which must be free: also one without a name.
    ///
    /// # Errors
    /// What linkat(2) reports; without `/proc` it can't be done.
    pub fn link_file(&self, file: &File, name: &OsStr) -> io::Result<()> {
        let (from, follow) = (descriptor(file), AtFlags::SYMLINK_FOLLOW);
        Ok(linkat(CWD, from, &self.descriptor, plain(name)?, follow)?)
    }

    /// Creates a symbolic link of this name, which must be free.
    ///
    /// # Errors
    /// What symlink(2) reports.
    pub fn symlink(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.descriptor, plain(name)?)?)
    }

    /// Where the symbolic link of this name leads.
    ///
    /// # Errors
    /// What readlink(2) reports.
    pub fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = readlinkat(&self.descriptor, plain(name)?, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Renames within the folder. What had the new name is replaced; of a link, the link.
    ///
    /// # Errors
    /// What rename(2) reports.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(
            &self.descriptor,
            plain(from)?,
            &self.descriptor,
            plain(to)?,
        )?)
    }

    /// Removes a name that isn't a folder; of a link, the link.
    ///
    /// # Errors
    /// What unlink(2) reports.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.descriptor, plain(name)?, AtFlags::empty())?)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// What rmdir(2) reports.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(
            &self.descriptor,
            plain(name)?,
            AtFlags::REMOVEDIR,
        )?)
    }

    /// Removes a folder with all that is in it, up to eight folders deep. Of a link, the link is removed.
    ///
    /// # Errors
    /// What unlink(2) and rmdir(2) report; `DirectoryNotEmpty` for what is deeper.
    pub fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
        self.remove_levels(name, MAX_DEPTH)
    }

    fn remove_levels(&self, name: &OsStr, levels: u32) -> io::Result<()> {
        if self.kind(name)? != Some(Kind::Folder) {
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

    /// Waits until no other process holds the folder's lock (flock(2)). It is released when the file is dropped.
    ///
    /// # Errors
    /// What open(2) and flock(2) report.
    pub fn lock(&self) -> io::Result<File> {
        let file = File::from(self.readable()?);
        file.lock()?;
        Ok(file)
    }

    fn readable(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, ".", flags, Mode::empty())?)
    }
}

/// What `O_DIRECTORY | O_NOFOLLOW` reports of a link or a file.
fn is_link_or_file(error: &io::Error) -> bool {
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    is(Errno::LOOP) || is(Errno::NOTDIR)
}

/// A name that stays in its folder.
fn plain(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    match bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        true => Err(Refusal::Outside.into()),
        false => Ok(name),
    }
}
