//! A disk with one object and its split DWARF file.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rperf_symbol::{CodeLayout, FileBytes, Files};

use crate::parts::Parts;

/// The object's path.
pub const OBJECT: &str = "/object";

/// The number of addresses taken from each code section.
const ADDRESSES: u64 = 24;

/// An object and, if there is one, its split DWARF file.
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
        // Any `.alt` file is the object itself, and any `.dwo` or `.dwp` file the split DWARF file.
        let extension = path.extension().and_then(OsStr::to_str);
        let found = match extension {
            _ if path == Path::new(OBJECT) || extension == Some("alt") => Some(&self.object),
            Some("dwo" | "dwp") => self.split.as_ref(),
            _ => None,
        };
        found.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// The address 0 and some addresses in the first four code sections, each with its file offset.
#[must_use]
pub fn addresses(file: &[u8]) -> Vec<(u64, u64)> {
    let layout = CodeLayout::of(file);
    let mut list = vec![(0, 0)];
    for section in layout.sections().iter().take(4) {
        let size = section.end - section.start;
        for number in 0..ADDRESSES {
            // At equal distances, plus up to 4 bytes to reach unaligned addresses, too.
            let offset = section
                .start
                .saturating_add(size / ADDRESSES * number + number % 5);
            list.push((layout.address(offset).unwrap_or(offset), offset));
        }
    }
    list
}
