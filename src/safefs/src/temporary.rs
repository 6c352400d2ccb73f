//! Temporary files: unnamed, or with an unpredictable name.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::Folder;

/// Creates an unnamed file in `folder`, accessible only to the user, which is deleted when its last
/// descriptor is closed.
///
/// # Errors
/// Errors of open(2), unlink(2) and getrandom(2).
pub fn unnamed_file(folder: &Path) -> io::Result<File> {
    let folder = Folder::open(folder)?;
    if let Some(file) = folder.create_unnamed(0o600) {
        return Ok(file);
    }
    // Without O_TMPFILE the file has a name for a moment.
    let name = temporary_name(OsStr::new("rperf"))?;
    let file = folder.create_file(&name, 0o600)?;
    folder.remove_file(&name)?;
    Ok(file)
}

/// Returns `NAME.RANDOM.tmp`, with 64 random bits in hexadecimal, for a file to be created with
/// `O_EXCL`.
///
/// # Errors
/// Errors of getrandom(2).
pub fn temporary_name(name: &OsStr) -> io::Result<OsString> {
    let mut random = [0; 8];
    let count = getrandom(&mut random, GetRandomFlags::empty())?;
    debug_assert_eq!(
        count,
        random.len(),
        "getrandom returns up to 256 bytes at once"
    );
    let mut temporary = name.to_owned();
    temporary.push(format!(".{:016x}.tmp", u64::from_ne_bytes(random)));
    Ok(temporary)
}
