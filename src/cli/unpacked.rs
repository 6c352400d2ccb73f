//! Joins the records of a recording into one slice if they are compressed or in several files of a directory.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use rperf_perfdata::{Error, PerfData, UnpackSummary};
use rperf_safefs::Folder;
use rperf_sys::MappedFile;

use super::context::Context;
use super::error::CliError;
use super::spool::{RecordingBytes, Spool};

/// Name of the file with the header in a directory created by `record --threads`.
pub(super) const HEADER: &str = "data";

/// A file of a directory of `record --threads` that contains only records.
pub(super) struct DirectoryFile {
    path: PathBuf,
    bytes: MappedFile,
}

impl DirectoryFile {
    /// Returns the files `data.0`, `data.1` and so on, by number. Empty ones are skipped.
    ///
    /// # Errors
    ///
    /// Those of `check`, and status 255 for files that can't be opened or are not regular.
    pub(super) fn of_directory(
        directory: &Folder,
        check: impl Fn(&Metadata) -> Result<(), CliError>,
    ) -> Result<Vec<Self>, CliError> {
        let names = directory.names()?;
        let mut numbered: Vec<(u32, &OsString)> = names
            .iter()
            .filter_map(|name| Some((part_number(name)?, name)))
            .collect();
        numbered.sort_unstable();
        let mut parts = Vec::new();
        for (_, name) in numbered {
            let path = directory.path().join(name);
            let failed = |error: io::Error| {
                CliError::message(255, format!("failed to open {}: {error}", path.display()))
            };
            let found = directory.find(name).map_err(failed)?;
            if found.metadata().len() == 0 && found.metadata().is_file() {
                continue;
            }
            check(found.metadata())?;
            let bytes = found.for_reading().and_then(|file| rperf_sys::map(&file));
            let bytes = bytes.map_err(failed)?;
            parts.push(Self { path, bytes });
        }
        Ok(parts)
    }
}

fn part_number(name: &OsStr) -> Option<u32> {
    let number = name.to_str()?.strip_prefix(HEADER)?.strip_prefix('.')?;
    number.parse().ok()
}

/// The records of all parts in one slice, decompressed.
pub(super) struct UnpackedRecords {
    pub(super) records: RecordingBytes,
    pub(super) summary: UnpackSummary,
}

impl UnpackedRecords {
    /// Collects the records of `data` and its parts on up to `threads` threads.
    ///
    /// # Errors
    ///
    /// Status 255: the unpacked records cannot be stored.
    pub(super) fn new(
        data: &PerfData<'_>,
        parts: &[DirectoryFile],
        threads: NonZeroUsize,
        context: &Context,
    ) -> Result<Self, CliError> {
        let mut spool = Spool::new(context);
        let directory = spool.directory().display().to_string();
        let bytes: Vec<&[u8]> = parts.iter().map(|part| &*part.bytes).collect();
        let unpacked = data.unpack_on(threads, &bytes, &mut spool);
        let unpacked = unpacked.and_then(|summary| Ok((summary, spool.finish()?)));
        let (summary, records) = unpacked.map_err(|error| {
            let what = format!("failed to store the unpacked records in {directory}");
            CliError::failure(255, anyhow::Error::new(error).context(what))
        })?;
        if let Some(Error::Part { part, source }) = &summary.end
            && let Some(part) = parts.get(*part as usize - 1)
        {
            context.warn(format_args!("{}: {source}", part.path.display()));
        }
        Ok(Self { records, summary })
    }
}
