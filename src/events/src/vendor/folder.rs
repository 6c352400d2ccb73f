//! Where tables are read from.

use std::fmt::Debug;
use std::io;

/// A folder of files, on a disk or not. Paths are relative to it, with `/` between their parts; the folder itself is "".
pub trait Folder: Debug {
    /// The text of a file.
    ///
    /// # Errors
    /// What reading it reports; bytes that are no UTF-8 are [`io::ErrorKind::InvalidData`].
    fn read(&self, path: &str) -> io::Result<String>;

    /// The names of what is in a folder, sorted; those of folders end in `/`. Nothing where there is no such folder.
    fn names(&self, path: &str) -> Vec<String>;
}

/// `name` within `folder`.
pub(super) fn join(folder: &str, name: &str) -> String {
    let name = name.trim_matches('/');
    match folder.is_empty() || name.is_empty() {
        true => format!("{folder}{name}"),
        false => format!("{folder}/{name}"),
    }
}
