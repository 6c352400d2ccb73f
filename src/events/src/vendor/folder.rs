//! Input of event tables.

use std::fmt::Debug;
use std::io;

/// A folder of files, on disk or built in. Paths are relative to it, separated by `/`; the folder
/// itself is "".
pub trait TableFolder: Debug {
    /// The text of a file.
    ///
    /// # Errors
    /// Errors of reading the file; [`io::ErrorKind::InvalidData`] if it is not UTF-8.
    fn read(&self, path: &str) -> io::Result<String>;

    /// The names in a folder, sorted; those of folders end in `/`. Empty if there is no such folder or if it cannot be read.
    fn names(&self, path: &str) -> Vec<String>;
}

/// Appends `name`, without leading and trailing slashes, to the path of `folder`.
pub(super) fn join(folder: &str, name: &str) -> String {
    let name = name.trim_matches('/');
    match folder.is_empty() || name.is_empty() {
        true => format!("{folder}{name}"),
        false => format!("{folder}/{name}"),
    }
}
