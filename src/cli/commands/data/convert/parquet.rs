//! `--to-parquet`: writes a recording as files of a Parquet data set.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rperf_dataset::{Dataset, TABLES, parquet};
use rperf_export::Profile;
use rperf_safefs::Folder;
use rperf_view::header::iso;

use super::super::is_set;
use super::DataConversion;
use super::target::ConversionTarget;
use crate::cli::error::CliError;

/// Checks that this build can write Parquet files.
///
/// # Errors
///
/// None: this build has the feature `parquet`. A build without it has another `check_support`, which fails.
pub(super) fn check_support() -> Result<(), CliError> {
    Ok(())
}

impl DataConversion<'_> {
    /// Writes a file for each table below the target folder; returns the size of all files in bytes.
    pub(super) fn write_parquet(
        &self,
        target: &ConversionTarget<'_>,
        profile: &Profile,
    ) -> Result<u64, CliError> {
        let dataset = self.dataset(profile);
        let start = iso(dataset.recording.start.div_euclid(1_000_000_000));
        let output = ParquetOutput {
            dataset: &dataset,
            date: start.split(' ').next().unwrap_or_default(),
            replaces: is_set(self.matches, "force"),
        };
        output
            .write(Path::new(target.destination))
            .map_err(|error| {
                let message = match error.kind() {
                    // The message of `write_table`, which names the file.
                    io::ErrorKind::AlreadyExists => error.to_string(),
                    _ => format!(
                        "failed to write the tables in {}: {error}",
                        target.destination
                    ),
                };
                CliError::message(255, message)
            })
    }
}

/// The files of one recording in a Parquet data set.
struct ParquetOutput<'d> {
    dataset: &'d Dataset<'d>,
    /// The day of the recording: `2026-11-23`, UTC.
    date: &'d str,
    /// Whether existing files are replaced.
    replaces: bool,
}

/// The written file of a table.
struct WrittenTable {
    folder: Folder,
    /// In bytes.
    size: u64,
    /// Whether there was a file of this name before.
    replaces_old: bool,
}

impl ParquetOutput<'_> {
    /// Writes all files; returns their size in bytes. If a file cannot be written, the new files before it are removed.
    /// A file that replaced another one stays: both are the same table of the same recording.
    fn write(&self, root: &Path) -> io::Result<u64> {
        // If the folder is a symbolic link, the link's owner must be the current user or the superuser.
        let root = Folder::open_own_or_create(root, 0o777)?;
        let mut written = Vec::new();
        let mut bytes = 0;
        for table in &TABLES {
            let path = parquet::path(table, self.dataset, self.date);
            let file = self.write_table(table, &root, &path);
            match file {
                Ok(file) => {
                    bytes += file.size;
                    written.push((file, path));
                }
                Err(error) => {
                    let new = written.iter().filter(|(file, _)| !file.replaces_old);
                    for (WrittenTable { folder, .. }, path) in new {
                        // An error here is ignored: the first one is reported.
                        let _ = folder.remove_file(name_of(path));
                    }
                    return Err(error);
                }
            }
        }
        Ok(bytes)
    }

    fn write_table(
        &self,
        table: &rperf_dataset::Table,
        root: &Folder,
        path: &Path,
    ) -> io::Result<WrittenTable> {
        let folder = root.create_below(path.parent().unwrap_or(Path::new("")), 0o777)?;
        let name = name_of(path);
        let replaces_old = folder.kind(name)?.is_some();
        if replaces_old && !self.replaces {
            let path = folder.path().join(name);
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!(
                    "Output file exists: {}. Use --force to overwrite it.",
                    path.display()
                ),
            ));
        }
        folder.write_atomic(name, 0o666, |out| parquet::write(table, self.dataset, out))?;
        let size = folder.open_file(name)?.metadata()?.len();
        Ok(WrittenTable {
            folder,
            size,
            replaces_old,
        })
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
