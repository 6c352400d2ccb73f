//! Atomic creation of files and folders: complete or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::Folder;
use crate::temporary::temporary_name;

impl Folder {
    /// Creates a file under a temporary name by `make`, and renames it to `name`, which is
    /// replaced. Links aren't followed.
    ///
    /// # Errors
    /// Errors of getrandom(2), `make` and rename(2); then `name` is unchanged, and the temporary file is removed.
    pub fn replace<T>(
        &self,
        name: &OsStr,
        make: impl FnOnce(&Self, &OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        let temporary = temporary_name(name)?;
        let made = make(self, &temporary).and_then(|made| {
            self.rename(&temporary, name)?;
            Ok(made)
        });
        // The first error is reported. After success the temporary name still exists if both names
        // were hard links to one file: rename(2) then does nothing.
        let _ = self.remove_file(&temporary);
        made
    }

    /// Creates a folder with this mode under a temporary name, and renames it to `name` after `fill` has filled it.
    /// `name` must not exist, or must be an empty folder.
    ///
    /// # Errors
    /// Errors of getrandom(2), [`Folder::create_folder`], `fill` and rename(2). If one of the last two fails, the temporary
    /// folder is removed.
    pub fn replace_folder<T>(
        &self,
        name: &OsStr,
        mode: u32,
        fill: impl FnOnce(&Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let temporary = temporary_name(name)?;
        let folder = self.create_folder(&temporary, mode)?;
        let filled = fill(&folder).and_then(|filled| {
            self.rename(&temporary, name)?;
            Ok(filled)
        });
        if filled.is_err() {
            // The first error is reported.
            let _ = self.remove_tree(&temporary);
        }
        filled
    }

    /// Writes a file, which gets its name only when it is complete, and then replaces an older file. Until then it is unnamed if
    /// the file system supports that (`O_TMPFILE`, open(2)), so that a killed process leaves nothing; otherwise it has a
    /// temporary name.
    ///
    /// # Errors
    /// Errors of `write`, and of creating, linking and renaming the file.
    pub fn write_atomic<T>(
        &self,
        name: &OsStr,
        mode: u32,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> io::Result<T> {
        // Without proc(5) an unnamed file can't get a name later.
        if Path::new("/proc/self/fd").is_dir()
            && let Some(file) = self.create_unnamed(mode)
        {
            let (written, file) = write_buffered(file, write)?;
            self.replace(name, |folder, temporary| folder.link_file(&file, temporary))?;
            return Ok(written);
        }
        self.replace(name, |folder, temporary| {
            let file = folder.create_file(temporary, mode)?;
            Ok(write_buffered(file, write)?.0)
        })
    }
}

/// Writes the file with a buffer; returns the result of `write`, and the file.
fn write_buffered<T>(
    file: File,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<(T, File)> {
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((written, file))
}

/// Like [`Folder::replace`], by path.
///
/// # Errors
/// Errors of [`Folder::parent_of`] and [`Folder::replace`].
pub fn replace<T>(
    path: &Path,
    make: impl FnOnce(&Folder, &OsStr) -> io::Result<T>,
) -> io::Result<T> {
    let (folder, name) = Folder::parent_of(path)?;
    folder.replace(name, make)
}

/// Like [`Folder::write_atomic`], by path, with mode 0666 as limited by the umask.
///
/// # Errors
/// Errors of [`Folder::parent_of`] and [`Folder::write_atomic`].
pub fn write_atomic<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let (folder, name) = Folder::parent_of(path)?;
    folder.write_atomic(name, 0o666, write)
}
