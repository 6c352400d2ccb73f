//! `--to-ctf`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use rperf_export::ctf::{
    CtfBlock, CtfEnvironment, CtfLayout, CtfRender, CtfWriter, stream_name, write_metadata,
};
use rperf_replay::FoldControl;
use rperf_resolve::UserStacks;
use rperf_safefs::{FileKind, Folder};
use rperf_wire::SampleType;

use super::super::is_set;
use super::target::ConversionTarget;
use super::{DataConversion, wall_clock_offset};
use crate::cli::error::CliError;
use crate::cli::shared::analysis::Analysis;

const METADATA: &str = "metadata";

impl DataConversion<'_> {
    /// Writes a trace: the metadata and a stream for each CPU with records. Returns the number of samples, and the size in bytes.
    pub(super) fn write_ctf(
        &self,
        target: &ConversionTarget<'_>,
        stacks: &UserStacks<'_, '_>,
    ) -> Result<(u64, u64), CliError> {
        self.refuse_samples_without_time()?;
        let clock_offset = match is_set(self.matches, "tod") {
            true => wall_clock_offset(self.analysis.metadata())?,
            false => 0,
        };
        let path = Path::new(target.destination);
        let failed = |error: io::Error| {
            let message = match error.kind() {
                // The text is complete: it comes from `OldTrace::find`.
                io::ErrorKind::AlreadyExists => error.to_string(),
                _ => format!("failed to write the trace {}: {error}", path.display()),
            };
            CliError::message(255, message)
        };
        let (parent, name) = Folder::parent_of(path).map_err(failed)?;
        let replaces = is_set(self.matches, "force");
        let old = OldTrace::find(&parent, path, replaces).map_err(failed)?;
        let written = parent.replace_folder(name, 0o777, |folder| {
            let written = self.fill(folder, clock_offset, stacks)?;
            // The new trace is complete under a temporary name; only an empty folder can be replaced by it.
            old.remove()?;
            Ok(written)
        });
        written.map_err(failed)
    }

    fn refuse_samples_without_time(&self) -> Result<(), CliError> {
        let Analysis { replay, .. } = self.analysis;
        let events = self.analysis.data().events().iter();
        let mut with_counts = events.zip(replay.sample_counts());
        let untimed = with_counts.find(|(event, count)| {
            **count > 0 && !event.attr.sample_type.contains(SampleType::TIME)
        });
        untimed.map_or(Ok(()), |(event, _)| {
            let message = format!("--to-ctf: samples of {} have no time", event.name);
            Err(CliError::message(255, message).hint("record with -T"))
        })
    }

    /// Writes all files of the trace. Returns the number of samples, and the size in bytes.
    fn fill(
        &self,
        folder: &Folder,
        clock_offset: i64,
        stacks: &UserStacks<'_, '_>,
    ) -> io::Result<(u64, u64)> {
        let Analysis { replay, jobs, .. } = self.analysis;
        let recording = self.analysis.metadata();
        let layout = CtfLayout::new(recording, is_set(self.matches, "all"));
        let exporter = self.exporter();
        let mut metadata = Vec::new();
        let environment = CtfEnvironment {
            properties: self.properties(),
            clock_offset,
            exporter: &exporter,
        };
        write_metadata(&layout, &environment, &mut metadata)?;
        folder
            .create_file(OsStr::new(METADATA), 0o666)?
            .write_all(&metadata)?;
        let mut writer = CtfWriter::new(|cpu| -> io::Result<BufWriter<File>> {
            let file = folder.create_file(OsStr::new(&stream_name(cpu)), 0o666)?;
            Ok(BufWriter::new(file))
        });
        let render = CtfRender::new(&layout, stacks, recording.endian);
        let mut samples = 0;
        let mut added = Ok(());
        // A block is the output for consecutive samples and records.
        let take = &mut |block: &mut CtfBlock| {
            added = writer.add(block);
            samples += block.samples;
            match added {
                Ok(()) => FoldControl::Continue,
                Err(_) => FoldControl::Stop,
            }
        };
        let delivered = replay.ordered(*jobs, &render, take);
        delivered.map_err(io::Error::other)?;
        added?;
        Ok((samples, writer.finish()? + metadata.len() as u64))
    }

    /// The recorded properties of the machine: names, as in Linux perf's traces, and values.
    fn properties(&self) -> Vec<(&'static str, String)> {
        let features = self.analysis.metadata().features;
        let known = [
            ("host", features.hostname()),
            ("sysname", Some("Linux".to_owned())),
            ("release", features.os_release()),
            ("machine", features.arch()),
        ];
        known
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect()
    }
}

/// The trace that is replaced.
struct OldTrace {
    /// `None` if nothing is replaced.
    folder: Option<Folder>,
    /// The files in the folder.
    names: Vec<OsString>,
}

impl OldTrace {
    /// Finds the files of the trace at `path`; `parent` is the folder that contains the trace.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`: `path` is not a folder, contains a file that is not part of a trace, or is not empty although
    /// `replaces` is false.
    fn find(parent: &Folder, path: &Path, replaces: bool) -> io::Result<Self> {
        let taken = |text: String| Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        let name = path.file_name().unwrap_or_default();
        match parent.kind(name)? {
            None => {
                return Ok(Self {
                    folder: None,
                    names: Vec::new(),
                });
            }
            Some(FileKind::Folder) => {}
            Some(_) => return taken(format!("{} exists and is not a folder", path.display())),
        }
        let folder = parent.open_below(Path::new(name))?;
        let names = folder.names()?;
        if !names.is_empty() && !replaces {
            return taken(format!(
                "Output folder exists: {}. Use --force to overwrite it.",
                path.display()
            ));
        }
        let is_foreign = |name: &&OsString| {
            let text = name.to_string_lossy();
            text != METADATA && !text.starts_with("perf_stream_")
        };
        if let Some(foreign) = names.iter().find(is_foreign) {
            let foreign = path.join(foreign);
            return taken(format!(
                "{} is not part of a trace: give another folder",
                foreign.display()
            ));
        }
        Ok(Self {
            folder: Some(folder),
            names,
        })
    }

    fn remove(self) -> io::Result<()> {
        let Some(folder) = self.folder else {
            return Ok(());
        };
        self.names
            .iter()
            .try_for_each(|name| folder.remove_file(name))
    }
}
