//! Files of `/proc` and `/sys`. They are read without the checks of the crate `rperf-safefs`, since other users cannot create or
//! replace files there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reads a file of procfs or sysfs.
///
/// # Errors
/// What open(2) and read(2) report.
pub fn read_pseudo_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Like [`read_pseudo_file`], as text.
///
/// # Errors
/// Those of [`read_pseudo_file`]; [`io::ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_pseudo_file_text(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Returns the names in a folder of procfs or sysfs.
///
/// # Errors
/// What open(2) and getdents(2) report.
pub fn list_pseudo_folder(path: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
    let entries = fs::read_dir(path)?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns the target of a link in procfs.
///
/// # Errors
/// What readlink(2) reports.
pub fn link_target(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    fs::read_link(path)
}
