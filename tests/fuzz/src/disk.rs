//! A disk with one object and its separate debug file.

use std::io;
use std::path::Path;

use rperf_symbol::{CodeLayout, FileBytes, Files};

use crate::parts::Parts;

/// The object's path.
pub const OBJECT: &str = "/object";

/// The number of addresses looked up in each code section.
const READS: u64 = 24;

/// The files.
#[derive(Debug)]
pub struct Disk {
    /// The object.
    pub object: FileBytes,
    split: Option<FileBytes>,
}

impl Disk {
    /// A disk with the files of these parts.
    #[must_use]
    pub fn of(parts: &Parts<'_>) -> Self {
        Self {
            object: parts.file().into(),
            split: parts.split_file().map(FileBytes::from),
        }
    }

    /// A disk with this object only.
    #[must_use]
    pub fn with(object: &[u8]) -> Self {
        Self {
            object: object.to_vec().into(),
            split: None,
        }
    }
}

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<FileBytes> {
        let is_split = path
            .extension()
            .is_some_and(|end| end == "dwo" || end == "dwp");
        let found =
            match path == Path::new(OBJECT) || path.extension().is_some_and(|end| end == "alt") {
                true => Some(&self.object),
                false => self.split.as_ref().filter(|_| is_split),
            };
        found.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Some code addresses and their file offsets.
#[must_use]
pub fn addresses(file: &[u8]) -> Vec<(u64, u64)> {
    let layout = CodeLayout::of(file);
    let mut found = vec![(0, 0)];
    for section in layout.sections().iter().take(4) {
        let size = section.end - section.start;
        for number in 0..READS {
            let offset = section
                .start
                .saturating_add(size / READS * number + number % 5);
            found.push((layout.address(offset).unwrap_or(offset), offset));
        }
    }
    found
}
