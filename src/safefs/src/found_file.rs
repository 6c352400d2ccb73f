//! Files that are found by path, and checked before they are opened.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, fstat, fstatfs, openat};
use rustix::io::Errno;

use crate::{Refusal, is_trusted_owner};

/// Number of attempts to open a file while a lease blocks opening.
const LEASE_TRIES: u32 = 100;
/// Delay after each such attempt.
const LEASE_WAIT: Duration = Duration::from_millis(10);

/// `f_type` (statfs(2), `linux/magic.h`) of the virtual file systems from which [`FoundFile::for_reading`] refuses files.
const VIRTUAL_FILE_SYSTEMS: [u32; 13] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x7472_6163, // tracefs
    0x6462_6720, // debugfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinux
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x4249_4e4d, // binfmt_misc
];

/// A file that was found but not yet opened for reading or writing.
#[derive(Debug)]
pub struct FoundFile {
    /// Opened with `O_PATH`: refers to the file without giving access.
    file: File,
    metadata: Metadata,
    /// The path used to find it, for systems without `/proc`.
    path: PathBuf,
}

impl FoundFile {
    /// Finds the file at `path` and follows links.
    ///
    /// # Errors
    /// Errors of open(2) and fstat(2).
    pub fn find(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Self::new(openat(CWD, path, flags, Mode::empty())?, path.to_owned())
    }

    /// Takes a descriptor of `path` that was opened with `O_PATH`.
    pub(crate) fn new(descriptor: OwnedFd, path: PathBuf) -> io::Result<Self> {
        let file = File::from(descriptor);
        let metadata = file.metadata()?;
        Ok(Self {
            file,
            metadata,
            path,
        })
    }

    /// Type, owner, size and times of the file: the same file that [`FoundFile::for_reading`] opens.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Whether the file belongs to root or the effective user.
    #[must_use]
    pub fn has_trusted_owner(&self) -> bool {
        is_trusted_owner(self.metadata.uid())
    }

    /// Whether the file is a FIFO (fifo(7)).
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        self.metadata.file_type().is_fifo()
    }

    /// Opens a regular file for reading; files of virtual file systems are refused.
    ///
    /// # Errors
    /// [`Refusal::NotRegular`], [`Refusal::Virtual`], [`Refusal::Leased`], and errors of open(2).
    pub fn for_reading(&self) -> io::Result<File> {
        if !self.metadata.is_file() {
            return Err(Refusal::NotRegular.into());
        }
        if self.is_virtual()? {
            return Err(Refusal::Virtual.into());
        }
        self.reopen(OFlags::RDONLY)
    }

    /// Opens the file for reading, of any type; opening a FIFO waits for its writer.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn for_reading_any_type(&self) -> io::Result<File> {
        Ok(self.open_once(OFlags::RDONLY)?)
    }

    /// Opens the file for writing, of any type, without truncating it; opening a FIFO waits for its reader. A regular file is
    /// appended to: the shell has truncated the file behind `/dev/stdout` (`>`), or its content must be kept (`>>`).
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn for_writing(&self) -> io::Result<File> {
        Ok(self.open_once(OFlags::WRONLY | OFlags::APPEND)?)
    }

    /// Opens a FIFO or device for reading and writing, so that opening a FIFO doesn't wait for the
    /// other end (fifo(7)).
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn for_reading_and_writing(&self) -> io::Result<File> {
        Ok(self.open_once(OFlags::RDWR)?)
    }

    /// Like [`FoundFile::for_reading_and_writing`], with `O_NONBLOCK`: reads and writes that would block fail.
    ///
    /// # Errors
    /// Errors of open(2).
    pub fn for_reading_and_writing_nonblocking(&self) -> io::Result<File> {
        Ok(self.open_once(OFlags::RDWR | OFlags::NONBLOCK)?)
    }

    /// Opens the same file with these flags and `O_NONBLOCK`. Tries again while a lease blocks opening.
    ///
    /// # Errors
    /// [`Refusal::Leased`], and errors of open(2).
    pub(crate) fn reopen(&self, flags: OFlags) -> io::Result<File> {
        for _ in 0..LEASE_TRIES {
            match self.open_once(flags | OFlags::NONBLOCK) {
                // The kernel has asked the holder of a lease to release it.
                Err(Errno::WOULDBLOCK) => sleep(LEASE_WAIT),
                other => return Ok(other?),
            }
        }
        Err(Refusal::Leased.into())
    }

    /// Opens the same file with these flags, in one attempt. Without `O_NONBLOCK`, it waits while a lease blocks opening.
    fn open_once(&self, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        match openat(CWD, proc_link(&self.file), flags, Mode::empty()) {
            Err(Errno::NOENT) => self.open_by_path(flags),
            other => other.map(File::from),
        }
    }

    /// Without `/proc`, opens the path again and checks that it still leads to the same file.
    fn open_by_path(&self, flags: OFlags) -> Result<File, Errno> {
        let file = openat(CWD, &self.path, flags, Mode::empty())?;
        let found = fstat(&file)?;
        match (found.st_dev, found.st_ino) == (self.metadata.dev(), self.metadata.ino()) {
            true => Ok(File::from(file)),
            false => Err(Errno::STALE),
        }
    }

    fn is_virtual(&self) -> io::Result<bool> {
        let kind = fstatfs(&self.file)?.f_type;
        Ok(VIRTUAL_FILE_SYSTEMS
            .iter()
            .any(|known| i128::from(*known) == i128::from(kind)))
    }
}

impl AsFd for FoundFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The path of an open file's link in proc(5). It leads to that file even after a rename.
pub(crate) fn proc_link(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens the regular file at `path` for reading and follows links. Other types are refused.
///
/// # Errors
/// Errors of [`FoundFile::for_reading`], and errors of open(2).
pub fn open_regular(path: &Path) -> io::Result<File> {
    FoundFile::find(path)?.for_reading()
}

/// Reads the regular file at `path`, of at most `limit` bytes.
///
/// # Errors
/// Errors of [`open_regular`]; [`Refusal::TooLarge`].
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_all(open_regular(path)?, limit)
}

/// Reads an open file to its end, at most `limit` bytes.
///
/// # Errors
/// [`Refusal::TooLarge`], and errors of read(2).
pub fn read_all(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(Refusal::TooLarge { limit }.into()),
        false => Ok(bytes),
    }
}
