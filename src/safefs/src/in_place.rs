//! Outputs that are opened in place: FIFOs, devices, and files that are appended to or truncated.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat, ftruncate};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{Folder, FoundFile, Refusal, is_trusted_owner};

/// Origin of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathOrigin {
    /// Given by the user.
    Given,
    /// A default such as `perf.data`, or derived from one: another user can create a file there in
    /// advance.
    #[default]
    Default,
}

/// Treatment of a file's existing content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Keep it and append.
    Append,
    /// Discard it.
    Truncate,
}

/// `S_IWGRP | S_IWOTH` of inode(7).
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Finds the FIFO or device at `path`, to be opened by [`FoundFile::for_writing`] or
/// [`FoundFile::for_reading_and_writing`]. `None` for anything that can be replaced instead: a regular file, a
/// folder, or nothing. A regular file behind a link below `/dev` or `/proc`, such as `/dev/stdout`, is found, too.
///
/// Only links owned by root or the user are followed. Whether a file is found depends on its owner:
///
/// - the user: always;
/// - root: if the path was given;
/// - a third user: if the path was given and is not a link, and the folder either belongs to that third user, or is one where
///   only root and the user may create files;
/// - any user: if the path is a link to a descriptor of this process, such as `/dev/stdout`: with `sudo`, the terminal belongs to
///   another user.
///
/// Otherwise the result is [`Refusal::ForeignPipe`]. This is similar to `fs.protected_fifos` (sysctl), but regardless of its
/// setting and of the folder's sticky bit.
///
/// # Errors
/// [`Refusal::ForeignLink`], [`Refusal::ForeignPipe`], [`Refusal::NotRegular`] for a socket, and errors of open(2).
pub fn find_in_place(path: &Path, origin: PathOrigin) -> io::Result<Option<FoundFile>> {
    // `..` and `/` are folders.
    let Some(name) = path.file_name() else {
        return Ok(None);
    };
    let folder = match Folder::open(path.parent().unwrap_or(Path::new(""))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        folder => folder?,
    };
    let Some(found) = FoundOutput::at(&folder, name, path)? else {
        return Ok(None);
    };
    let kind = found.found_file.metadata().file_type();
    if kind.is_dir() || kind.is_file() && !found.by_dev_or_proc_link {
        return Ok(None);
    }
    if kind.is_socket() {
        return Err(Refusal::NotRegular.into());
    }
    match found.is_allowed(&folder, origin)? {
        true => Ok(Some(found.found_file)),
        false => Err(Refusal::ForeignPipe.into()),
    }
}

/// An existing output, found by path but not opened.
struct FoundOutput {
    found_file: FoundFile,
    /// Whether it was found through a link, so that the folder of the file itself is unknown.
    by_link: bool,
    /// Whether it was found through a link of root or the user below `/dev` or `/proc`, such as `/dev/stdout` or
    /// `/proc/self/fd/1`. Such a link isn't replaced, even if its target is a regular file.
    by_dev_or_proc_link: bool,
    /// Whether it was found through a link to a descriptor of this process.
    is_own_descriptor: bool,
}

/// Whether `path` is the name of a link to a descriptor of this process.
fn names_own_descriptor(path: &Path) -> bool {
    const LINKS: [&str; 2] = ["/dev/stdout", "/dev/stderr"];
    const FOLDERS: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];
    let is_in = |folder: &&str| path.parent() == Some(Path::new(folder));
    LINKS.iter().any(|link| path == Path::new(link)) || FOLDERS.iter().any(is_in)
}

impl FoundOutput {
    /// Finds `name`, the last component of `path`, in `folder`; `None` if there is no file.
    fn at(folder: &Folder, name: &OsStr, path: &Path) -> io::Result<Option<Self>> {
        let Some(stat) = folder.stat(name)? else {
            return Ok(None);
        };
        let by_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let found_file = match by_link {
            true => FoundFile::find(path),
            false => folder.find(name),
        };
        let found_file = match found_file {
            // A dangling link.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            found_file => found_file?,
        };
        let kind = found_file.metadata().file_type();
        let is_trusted_link = by_link && is_trusted_owner(stat.st_uid);
        // A link of another user to a file or a folder is not refused here: callers replace or refuse the link itself.
        if by_link && !is_trusted_link && !kind.is_file() && !kind.is_dir() {
            return Err(Refusal::ForeignLink.into());
        }
        let is_below_dev_or_proc = path.starts_with("/dev") || path.starts_with("/proc");
        Ok(Some(Self {
            found_file,
            by_link,
            by_dev_or_proc_link: is_trusted_link && is_below_dev_or_proc,
            is_own_descriptor: is_trusted_link && names_own_descriptor(path),
        }))
    }

    /// Whether the rules of [`find_in_place`] for owners allow writing.
    fn is_allowed(&self, folder: &Folder, origin: PathOrigin) -> io::Result<bool> {
        let owner = self.found_file.metadata().uid();
        if owner == geteuid().as_raw() || self.is_own_descriptor {
            return Ok(true);
        }
        if origin == PathOrigin::Default {
            return Ok(false);
        }
        let stat = folder.stat_self()?;
        let is_safe = !is_exposed(&stat) || owner == stat.st_uid;
        Ok(owner == 0 || (is_safe && !self.by_link))
    }
}

/// Opens a regular file for writing in place, and creates it if it doesn't exist. FIFOs and devices
/// are found as by [`find_in_place`]; opening a FIFO waits for its reader.
///
/// # Errors
/// Errors of [`find_in_place`]; `EISDIR` for a folder; `ENOENT` for a dangling link; [`Refusal::Leased`] if another
/// process holds a lease on the file; [`Refusal::ForeignLink`] for a link of another user; [`Refusal::ForeignFile`] in a folder
/// that others may write, unless the file is the user's and has no other hard links, or file and folder belong to the same third
/// user.
pub fn open_output(path: &Path, writing: WriteMode) -> io::Result<File> {
    // A regular file behind `/dev/stdout` is found, too, but opened below like every regular file.
    if let Some(found) = find_in_place(path, PathOrigin::Given)?
        && !found.metadata().is_file()
    {
        return found.for_writing();
    }
    let (folder, name) = Folder::parent_of(path)?;
    let Some(stat) = folder.stat(name)? else {
        return folder.create_file(name, 0o666);
    };
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if is_link && !is_trusted_owner(stat.st_uid) {
        return Err(Refusal::ForeignLink.into());
    }
    let found_file = match is_link {
        true => FoundFile::find(path)?,
        false => folder.find(name)?,
    };
    if found_file.metadata().is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !may_write_regular(&found_file, &folder)? {
        return Err(Refusal::ForeignFile.into());
    }
    let append = match writing {
        WriteMode::Append => OFlags::APPEND,
        WriteMode::Truncate => OFlags::empty(),
    };
    let file = found_file.reopen(OFlags::WRONLY | append)?;
    if writing == WriteMode::Truncate {
        ftruncate(&file, 0)?;
    }
    Ok(file)
}

/// Whether a regular file may be written. In a folder that others may write, its name may be a hard link
/// that another user made to a file of this user.
fn may_write_regular(file: &FoundFile, folder: &Folder) -> io::Result<bool> {
    let (owner, stat) = (file.metadata().uid(), folder.stat_self()?);
    let is_own_only_link = owner == geteuid().as_raw() && file.metadata().nlink() == 1;
    // For example, root writes a user's file in that user's folder.
    let is_of_folder_owner = owner == stat.st_uid && !is_trusted_owner(owner);
    Ok(!is_exposed(&stat) || is_own_only_link || is_of_folder_owner)
}

/// Whether users other than root and the effective user may create files in the folder.
fn is_exposed(folder: &Stat) -> bool {
    folder.st_mode & WRITABLE_BY_OTHERS != 0 || !is_trusted_owner(folder.st_uid)
}
