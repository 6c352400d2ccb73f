//! Files that the kernel makes up, under paths that nobody else can write: `/proc`, `/sys`.

use std::fs;
use std::io;
use std::path::Path;

/// The content of a file of procfs or sysfs.
///
/// # Errors
/// What open(2) and read(2) report.
pub fn kernel_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// [`kernel_file`] as text.
///
/// # Errors
/// Those of [`kernel_file`]; `InvalidData` for what is not UTF-8.
pub fn kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    fs::read_to_string(path)
}
