//! Outputs that are opened as they are: FIFOs and devices, and files that are appended to or written over.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FileType, OFlags, Stat, ftruncate};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{Folder, Opened, Refusal, is_users};

/// How a path came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// The user gave it.
    Given,
    /// It is a default, such as `perf.data`, or made of one: another user can put something there in advance.
    Default,
}

/// What happens to what a file holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    /// It is kept, and written behind.
    Append,
    /// It is discarded.
    Truncate,
}

/// `S_IWGRP | S_IWOTH` of inode(7).
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Finds the FIFO or device at `path`, to be opened by [`Opened::for_writing`] or [`Opened::for_both`]. `None` for what can be
/// replaced instead: a regular file, a folder, or nothing.
///
/// Links are followed if they are root's or the user's own. A FIFO or device of another user is found only if its path was
/// given and the folder is one that others can't write, or is that user's: the rule of `fs.protected_fifos` (sysctl), which
/// holds here whatever that setting says.
///
/// # Errors
/// [`Refusal::ForeignLink`], [`Refusal::ForeignPipe`], [`Refusal::NotRegular`] for a socket, and what open(2) reports.
pub fn find_in_place(path: &Path, naming: Naming) -> io::Result<Option<Opened>> {
    // `..` and `/` are folders.
    let Some(name) = path.file_name() else {
        return Ok(None);
    };
    let folder = match Folder::open(path.parent().unwrap_or(Path::new(""))) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        folder => folder?,
    };
    let Some(found) = Found::at(&folder, name, path)? else {
        return Ok(None);
    };
    let kind = found.opened.metadata().file_type();
    // `/dev/stdout` and `/proc/self/fd/1` can't be replaced, whatever they lead to.
    let is_descriptor = found.by_link && (path.starts_with("/dev") || path.starts_with("/proc"));
    if kind.is_dir() || kind.is_file() && !is_descriptor {
        return Ok(None);
    }
    if kind.is_socket() {
        return Err(Refusal::NotRegular.into());
    }
    match found.may_be_written(&folder, naming)? {
        true => Ok(Some(found.opened)),
        false => Err(Refusal::ForeignPipe.into()),
    }
}

/// What a name leads to.
struct Found {
    opened: Opened,
    /// Whether a link led there, so that its folder isn't known.
    by_link: bool,
}

impl Found {
    fn at(folder: &Folder, name: &OsStr, path: &Path) -> io::Result<Option<Self>> {
        let Some(stat) = folder.stat(name)? else {
            return Ok(None);
        };
        let by_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let opened = match by_link {
            true => Opened::find(path),
            false => folder.find(name),
        };
        let opened = match opened {
            // A link that leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let kind = opened.metadata().file_type();
        // A link to a file or a folder is replaced itself.
        if by_link && !is_users(stat.st_uid) && !kind.is_file() && !kind.is_dir() {
            return Err(Refusal::ForeignLink.into());
        }
        Ok(Some(Self { opened, by_link }))
    }

    fn may_be_written(&self, folder: &Folder, naming: Naming) -> io::Result<bool> {
        let owner = self.opened.metadata().uid();
        if owner == geteuid().as_raw() {
            return Ok(true);
        }
        if naming == Naming::Default {
            return Ok(false);
        }
        let stat = folder.own_stat()?;
        let is_safe = !is_exposed(&stat) || owner == stat.st_uid;
        Ok(owner == 0 || (is_safe && !self.by_link))
    }
}

/// Opens a regular file to write to it as it is, and creates it first if it doesn't exist. FIFOs and devices are found as by
/// [`find_in_place`]; a FIFO waits for its reader.
///
/// # Errors
/// Those of [`find_in_place`]; [`Refusal::ForeignLink`] for a link of another user, [`Refusal::ForeignFile`] for a file of
/// another user, or one that has several names, in a folder that others may write.
pub fn open_output(path: &Path, writing: Writing) -> io::Result<File> {
    if let Some(found) = find_in_place(path, Naming::Given)? {
        return found.for_writing();
    }
    let (folder, name) = Folder::of(path)?;
    let Some(stat) = folder.stat(name)? else {
        return folder.create_file(name, 0o666);
    };
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if is_link && !is_users(stat.st_uid) {
        return Err(Refusal::ForeignLink.into());
    }
    let opened = match is_link {
        true => Opened::find(path)?,
        false => folder.find(name)?,
    };
    if opened.metadata().is_dir() {
        return Err(Errno::ISDIR.into());
    }
    if !may_be_written(&opened, &folder)? {
        return Err(Refusal::ForeignFile.into());
    }
    let append = match writing {
        Writing::Append => OFlags::APPEND,
        Writing::Truncate => OFlags::empty(),
    };
    let file = opened.reopen(OFlags::WRONLY | append)?;
    if writing == Writing::Truncate {
        ftruncate(&file, 0)?;
    }
    Ok(file)
}

/// In a folder that others may write, a file may be a hard link to one of the user's from elsewhere.
fn may_be_written(file: &Opened, folder: &Folder) -> io::Result<bool> {
    let (owner, stat) = (file.metadata().uid(), folder.own_stat()?);
    let is_own = owner == geteuid().as_raw() && file.metadata().nlink() == 1;
    // As root in another user's folder: that user's own file.
    let is_of_folder = owner == stat.st_uid && !is_users(owner);
    Ok(!is_exposed(&stat) || is_own || is_of_folder)
}

/// Whether others than root and the effective user may put files into the folder.
fn is_exposed(folder: &Stat) -> bool {
    folder.st_mode & WRITABLE_BY_OTHERS != 0 || !is_users(folder.st_uid)
}
