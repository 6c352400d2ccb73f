//! Recordings that are directories: their contents, and removal.
//!
//! ```text
//! DIR/data          the header, and records that are not in a ring's file
//!    /data.N        records of one ring (`--threads`)
//!    /kcore_dir/    the kernel's code (`--kcore`): kcore, kallsyms, modules
//! ```

use std::ffi::OsStr;
use std::io::{self, Read as _};

use rperf_perfdata::{MAGIC_SIZE, is_perf_data};
use rperf_safefs::{FileKind, Folder};

use crate::unlinked::UnlinkedFiles;

/// The name of the file with the header. The files of rings have this name, a dot and a number.
pub(crate) const HEADER: &str = "data";
/// The folder with kernel code, as in Linux perf.
pub(crate) const KERNEL: &str = "kcore_dir";
/// The files that the folder [`KERNEL`] may contain.
const KERNEL_FILES: [&str; 3] = ["kcore", "kallsyms", "modules"];

/// Whether `directory` is a recording: it has a file with the header.
pub(crate) fn is_recording(directory: &Folder) -> bool {
    let mut begin = [0; MAGIC_SIZE];
    let file = directory.open_file(HEADER.as_ref());
    file.and_then(|mut file| file.read_exact(&mut begin))
        .is_ok()
        && is_perf_data(&begin)
}

/// Removes the directory `name` if it is a recording and contains nothing else. Returns the removed files, without those of the
/// kernel's code; the blocks of the returned files are freed when the result is dropped.
///
/// # Errors
/// `DirectoryNotEmpty` if it contains anything else, or no header of a recording; then nothing is
/// removed. Other errors are those of system calls.
pub(crate) fn remove(folder: &Folder, name: &OsStr) -> io::Result<UnlinkedFiles> {
    let directory = folder.open_below(name.as_ref())?;
    if !is_recording(&directory) {
        return Err(not_empty());
    }
    let unlinked = remove_contents(&directory)?;
    folder.remove_folder(name)?;
    Ok(unlinked)
}

/// Removes the contents of a recording's directory. Returns the removed files, without those of the kernel's code.
///
/// # Errors
/// `DirectoryNotEmpty` if it contains anything that is not of a recording; then nothing is removed. Other errors are those of
/// system calls.
pub(crate) fn remove_contents(directory: &Folder) -> io::Result<UnlinkedFiles> {
    let mut unlinked = UnlinkedFiles::default();
    let names = directory.names()?;
    let kernel = match directory.kind(KERNEL.as_ref())? {
        Some(FileKind::Folder) => Some(directory.open_below(KERNEL.as_ref())?),
        // If it is not a folder, it is removed like the other files.
        _ => None,
    };
    for name in &names {
        let is_file = directory.kind(name)? != Some(FileKind::Folder);
        if name != KERNEL && !(is_part(name) && is_file) {
            return Err(not_empty());
        }
    }
    if let Some(kernel) = &kernel {
        let names = kernel.names()?;
        for name in &names {
            let is_file = kernel.kind(name)? != Some(FileKind::Folder);
            if !(KERNEL_FILES.iter().any(|file| name == file) && is_file) {
                return Err(not_empty());
            }
        }
        names.iter().try_for_each(|name| kernel.remove_file(name))?;
    }
    for name in names {
        if kernel.is_some() && name == KERNEL {
            directory.remove_folder(&name)?;
        } else {
            unlinked.keep(directory, &name);
            directory.remove_file(&name)?;
        }
    }
    Ok(unlinked)
}

/// Whether `name` is `data`, `data.0`, `data.1` and so on.
fn is_part(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let number = name
        .strip_prefix(HEADER)
        .and_then(|rest| rest.strip_prefix('.'));
    name == HEADER
        || number.is_some_and(|number| {
            let parsed = number.parse::<u32>();
            // Not `data.+1` or `data.01`.
            parsed.is_ok_and(|parsed| parsed.to_string() == number)
        })
}

fn not_empty() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOTEMPTY)
}
