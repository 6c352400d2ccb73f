//! Joins the records of a recording into one slice if they are compressed or in several files of a directory.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use rperf_perfdata::{Error, PerfData, UnpackSummary};
use rperf_safefs::Folder;
use rperf_sys::MappedFile;

use crate::{RecordingBytes, Spool};

/// Name of the file with the header in a directory created by `record --threads`. The names of the other files start with it.
pub const HEADER_FILE_NAME: &str = "data";

/// A part of a recording: a file with only records, in a directory created by `record --threads`.
#[derive(Debug)]
pub struct DirectoryFile {
    path: PathBuf,
    bytes: MappedFile,
}

/// A part, a file of a directory, that cannot be opened or mapped.
#[derive(Debug)]
pub struct PartError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub cause: io::Error,
}

impl fmt::Display for PartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "failed to open {}", self.path.display())
    }
}

impl std::error::Error for PartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl DirectoryFile {
    /// Returns the files `data.0`, `data.1` and so on, in the order of their numbers. Empty files are skipped; for each other
    /// file, `check` is called with its metadata.
    ///
    /// # Errors
    /// Errors of `check` and of listing the directory; [`PartError`] for files that can't be opened or mapped, or are not
    /// regular.
    pub fn of_directory<E: From<PartError> + From<io::Error>>(
        directory: &Folder,
        check: impl Fn(&Metadata) -> Result<(), E>,
    ) -> Result<Vec<Self>, E> {
        let names = directory.names()?;
        let mut numbered: Vec<(u32, &OsString)> = names
            .iter()
            .filter_map(|name| Some((part_number(name)?, name)))
            .collect();
        numbered.sort_unstable();
        let mut parts = Vec::new();
        for (_, name) in numbered {
            let path = directory.path().join(name);
            let failed = |cause: io::Error| PartError {
                path: path.clone(),
                cause,
            };
            let found = directory.find(name).map_err(failed)?;
            if found.metadata().len() == 0 && found.metadata().is_file() {
                continue;
            }
            check(found.metadata())?;
            let bytes = found
                .for_reading()
                .and_then(|file| rperf_sys::map_open_file(&file));
            let bytes = bytes.map_err(failed)?;
            parts.push(Self { path, bytes });
        }
        Ok(parts)
    }
}

fn part_number(name: &OsStr) -> Option<u32> {
    let name = name.to_str()?.strip_prefix(HEADER_FILE_NAME)?;
    name.strip_prefix('.')?.parse().ok()
}

/// The decompressed records of a recording and of all files of its directory, in one slice.
#[derive(Debug)]
pub struct UnpackedRecords {
    /// The records.
    pub records: RecordingBytes,
    /// How many records were compressed, and the first error.
    pub summary: UnpackSummary,
    /// The message about the first error if it is in a [`DirectoryFile`], with the path of that file.
    pub damage: Option<String>,
}

impl UnpackedRecords {
    /// Collects the records of `data`, and of `parts`, the other files of its directory, in `spool`. Decompresses on up to
    /// `threads` threads.
    ///
    /// # Errors
    /// The unpacked records cannot be stored.
    pub fn new(
        data: &PerfData<'_>,
        parts: &[DirectoryFile],
        threads: NonZeroUsize,
        mut spool: Spool,
    ) -> io::Result<Self> {
        let bytes: Vec<&[u8]> = parts.iter().map(|part| &*part.bytes).collect();
        let summary = data.unpack_on(threads, &bytes, &mut spool)?;
        let damage = match &summary.first_error {
            // `part` is the position in `parts`, from 1; it is not the number in the file's name, which starts at 0.
            Some(Error::Part { part, source }) => parts
                .get((*part as usize).wrapping_sub(1))
                .map(|part| format!("{}: {source}", part.path.display())),
            _ => None,
        };
        Ok(Self {
            records: spool.finish()?,
            summary,
            damage,
        })
    }
}
