//! The records of a recording in one run, where the file does not hold them so: decompressed, and those of
//! all files of a directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rperf_perfdata::{Error, PerfData};
use rperf_sys::MappedFile;

use super::context::Context;
use super::error::CliError;
use super::spool::{Bytes, Spool};

/// Name of the file with the header in a directory that `record --threads` made.
pub(super) const HEADER: &str = "data";

/// A file of such a directory that holds nothing but records.
pub(super) struct Part {
    path: PathBuf,
    bytes: MappedFile,
}

impl Part {
    /// The files `data.0`, `data.1` and so on, by number. Empty ones are left out.
    pub(super) fn of_directory(directory: &Path) -> io::Result<Vec<Self>> {
        let mut numbered = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if let Some(number) = part_number(&entry.file_name())
                && entry.metadata()?.len() > 0
            {
                numbered.push((number, entry.path()));
            }
        }
        numbered.sort();
        let parts = numbered.into_iter().map(|(_, path)| {
            let bytes = rperf_sys::map_file(&path)?;
            Ok(Self { path, bytes })
        });
        parts.collect()
    }
}

fn part_number(name: &OsStr) -> Option<u32> {
    let number = name.to_str()?.strip_prefix(HEADER)?.strip_prefix('.')?;
    number.parse().ok()
}

/// Records in one run, and why there are not more.
pub(super) struct Unpacked {
    pub(super) records: Bytes,
    pub(super) end: Option<Error>,
}

impl Unpacked {
    /// Gathers the records of `data` and its parts.
    ///
    /// # Errors
    ///
    /// Status 255: there is no room for them.
    pub(super) fn new(
        data: &PerfData<'_>,
        parts: &[Part],
        context: &Context,
    ) -> Result<Self, CliError> {
        let mut spool = Spool::new(context);
        let directory = spool.directory().display().to_string();
        let bytes: Vec<&[u8]> = parts.iter().map(|part| &*part.bytes).collect();
        let unpacked = data.unpack(&bytes, &mut spool);
        let unpacked = unpacked.and_then(|end| Ok((end, spool.finish()?)));
        let (end, records) = unpacked.map_err(|error| {
            let what = format!("failed to store the unpacked records in {directory}");
            CliError::failure(255, anyhow::Error::new(error).context(what))
        })?;
        if let Some(Error::Part { part, source }) = &end
            && let Some(part) = parts.get(*part as usize - 1)
        {
            context.warn(format_args!("{}: {source}", part.path.display()));
        }
        Ok(Self { records, end })
    }
}
