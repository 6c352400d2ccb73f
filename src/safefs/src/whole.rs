//! Files that appear whole or not at all.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use crate::Folder;
use crate::nameless::temporary_name;

impl Folder {
    /// Creates a name by `make`, under a temporary one, and moves it to `name`. What had the name before is replaced; of a
    /// link, the link.
    ///
    /// # Errors
    /// What `make` and rename(2) report; then `name` is as it was. No temporary name is left.
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
        // The first error is the one to report. After success the name is still there if both are links to one file, which
        // rename(2) leaves as they are.
        let _ = self.remove_file(&temporary);
        made
    }

    /// Creates a folder that only the user may enter, and which gets its name when `fill` has filled it. The name must be free,
    /// or that of an empty folder.
    ///
    /// # Errors
    /// What `fill`, mkdir(2) and rename(2) report; then nothing is left.
    pub fn replace_folder<T>(
        &self,
        name: &OsStr,
        fill: impl FnOnce(&Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let temporary = temporary_name(name)?;
        let folder = self.create_folder(&temporary, 0o700)?;
        let filled = fill(&folder).and_then(|filled| {
            self.rename(&temporary, name)?;
            Ok(filled)
        });
        if filled.is_err() {
            // The first error is the one to report.
            let _ = self.remove_tree(&temporary);
        }
        filled
    }

    /// Writes a file that gets its name when it is whole. Until then it has none, if the file system can do that
    /// (`O_TMPFILE`, open(2)): then a process that is killed leaves nothing.
    ///
    /// # Errors
    /// What `write`, creating and moving the file report.
    pub fn write_whole<T>(
        &self,
        name: &OsStr,
        mode: u32,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> io::Result<T> {
        // Without proc(5) such a file can't get its name later.
        if Path::new("/proc/self/fd").is_dir()
            && let Some(file) = self.create_nameless(mode)
        {
            let (written, file) = finish(file, write)?;
            self.replace(name, |folder, temporary| folder.link_file(&file, temporary))?;
            return Ok(written);
        }
        self.replace(name, |folder, temporary| {
            let file = folder.create_file(temporary, mode)?;
            Ok(finish(file, write)?.0)
        })
    }
}

fn finish<T>(
    file: File,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<(T, File)> {
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok((written, file))
}

/// [`Folder::replace`] for a path.
///
/// # Errors
/// Those of [`Folder::of`] and [`Folder::replace`].
pub fn replace<T>(
    path: &Path,
    make: impl FnOnce(&Folder, &OsStr) -> io::Result<T>,
) -> io::Result<T> {
    let (folder, name) = Folder::of(path)?;
    folder.replace(name, make)
}

/// [`Folder::write_whole`] for a path, readable by all that the umask allows.
///
/// # Errors
/// Those of [`Folder::of`] and [`Folder::write_whole`].
pub fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<T> {
    let (folder, name) = Folder::of(path)?;
    folder.write_whole(name, 0o666, write)
}
