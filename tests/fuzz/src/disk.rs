//! A disk with one object and the file with its split debug information.

use std::io;
use std::path::Path;

use rperf_symbol::{CodeLayout, FileBytes, Files};

use crate::parts::Parts;

/// Where the object is.
pub const OBJECT: &str = "/object";

/// How many addresses of each section of code are asked for.
const ASKED: u64 = 24;

/// The files.
#[derive(Debug)]
pub struct Disk {
    /// The object.
    pub object: FileBytes,
    split: Option<FileBytes>,
}

impl Disk {
    /// With the files of these parts.
    #[must_use]
    pub fn of(parts: &Parts<'_>) -> Self {
        Self {
            object: parts.file().into(),
            split: parts.split_file().map(FileBytes::from),
        }
    }

    /// With this object alone.
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

/// Some addresses of code, and their offsets in the file.
#[must_use]
pub fn addresses(file: &[u8]) -> Vec<(u64, u64)> {
    let layout = CodeLayout::of(file);
    let mut found = vec![(0, 0)];
    for section in layout.sections().iter().take(4) {
        let size = section.end - section.start;
        for number in 0..ASKED {
            let offset = section
                .start
                .saturating_add(size / ASKED * number + number % 5);
            found.push((layout.address(offset).unwrap_or(offset), offset));
        }
    }
    found
}
