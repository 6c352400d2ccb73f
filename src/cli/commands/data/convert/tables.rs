//! `--to-ndjson` and `--to-parquet`: recordings as tables.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rperf_dataset::{Dataset, RecordRows, RecordingInfo, TABLES, ndjson, parquet};
use rperf_export::Profile;
use rperf_safefs::Folder;
use rperf_view::header::iso;

use super::super::is_set;
use super::target::Target;
use super::{Conversion, compressed, estimated_start, start};
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;

impl Conversion<'_> {
    /// The recording as tables.
    fn dataset<'p>(&self, profile: &'p Profile) -> Dataset<'p> {
        let recording = self.analysis.metadata();
        let features = recording.features;
        let host = features.hostname().unwrap_or_default();
        let clock_start = start(recording, profile);
        let command = features.cmdline().map(|words| words.join(" "));
        let data = self.analysis.data();
        Dataset {
            recording: RecordingInfo {
                id: RecordingInfo::id_of(&host, profile.first_time(), data.header().data.size),
                host,
                os_release: features.os_release().unwrap_or_default(),
                arch: features.arch().unwrap_or_default(),
                cpu: features.cpudesc().unwrap_or_default(),
                command_line: command.unwrap_or_default(),
                recorder: features.version().unwrap_or_default(),
                start: clock_start.unwrap_or_else(|| estimated_start(self.analysis.input, profile)),
                has_clock: clock_start.is_some(),
            },
            profile,
            records: RecordRows::of(&self.analysis.replay, data.endian()),
        }
    }

    /// Writes all tables into one file.
    pub(super) fn write_ndjson(
        &self,
        target: &Target<'_>,
        profile: &Profile,
    ) -> Result<(), CliError> {
        let dataset = self.dataset(profile);
        write_to(Path::new(target.path), self.analysis.context, |out| {
            compressed(target.path, out, |out| ndjson::write(&dataset, out))
        })
    }

    /// Writes a file for each table below the folder; returns their size in bytes.
    pub(super) fn write_parquet(
        &self,
        target: &Target<'_>,
        profile: &Profile,
    ) -> Result<u64, CliError> {
        let dataset = self.dataset(profile);
        let day = iso(dataset.recording.start.div_euclid(1_000_000_000));
        let output = ParquetOutput {
            dataset: &dataset,
            date: day.split(' ').next().unwrap_or_default(),
            replaces: is_set(self.matches, "force"),
        };
        output.write(Path::new(target.path)).map_err(|error| {
            let message = match error.kind() {
                io::ErrorKind::AlreadyExists => error.to_string(),
                _ => format!("failed to write the tables in {}: {error}", target.path),
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

impl ParquetOutput<'_> {
    /// Writes all files or none; returns their size in bytes.
    fn write(&self, root: &Path) -> io::Result<u64> {
        let root = Folder::open_own_or_create(root, 0o777)?;
        let mut written = Vec::new();
        let mut bytes = 0;
        for table in &TABLES {
            let path = parquet::path(table, self.dataset, self.date);
            let file = self.write_table(table, &root, &path);
            match file {
                Ok((folder, size)) => {
                    bytes += size;
                    written.push((folder, path));
                }
                Err(error) => {
                    for (folder, path) in &written {
                        // The first error is reported.
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
    ) -> io::Result<(Folder, u64)> {
        let folder = root.create_below(path.parent().unwrap_or(Path::new("")), 0o777)?;
        let name = name_of(path);
        if !self.replaces && folder.kind(name)?.is_some() {
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
        Ok((folder, size))
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}
