//! `--per-event-dump`: one output file for each event.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use rperf_perfdata::EventDesc;
use rperf_safefs::{WriteMode, open_output};
use rperf_view::script::{BlockJoiner, ScriptBlock};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The output files, one for each event of the recording, in order.
pub(super) struct PerEventDump {
    files: Vec<EventFile>,
}

struct EventFile {
    path: PathBuf,
    out: BufWriter<File>,
    bytes: u64,
    samples: u64,
}

impl PerEventDump {
    /// Creates the files next to the recording `path`. The files of further events of the same name are numbered from 2 on.
    ///
    /// # Errors
    ///
    /// Status 255: a file that can't be created.
    pub(super) fn create(path: &Path, events: &[EventDesc]) -> Result<Self, CliError> {
        let mut counts = BTreeMap::new();
        let files = events.iter().map(|event| {
            // The slash between a PMU and its event would separate directories.
            let event = event.name.replace('/', "_");
            let mut name = path.as_os_str().to_owned();
            let count = counts.entry(event.clone()).or_insert(0);
            *count += 1;
            match *count {
                1 => name.push(format!(".{event}.dump")),
                number => name.push(format!(".{event}.{number}.dump")),
            }
            let path = PathBuf::from(name);
            let file = open_output(&path, WriteMode::Truncate)
                .map_err(|error| write_error(&path, error))?;
            Ok(EventFile {
                path,
                out: BufWriter::new(file),
                bytes: 0,
                samples: 0,
            })
        });
        Ok(Self {
            files: files.collect::<Result<_, CliError>>()?,
        })
    }

    /// Writes the samples of a block, each to the file of its event; the text of other records goes to stdout.
    pub(super) fn write(
        &mut self,
        context: &Context,
        join: &mut BlockJoiner,
        block: &ScriptBlock,
    ) -> Result<(), CliError> {
        // Each part is one sample, with the index of its event, or another record, with `None`.
        for (event, text) in join.parts(block) {
            let file = event.and_then(|event| self.files.get_mut(event));
            let Some(file) = file else {
                context.stdout().write_all(text)?;
                continue;
            };
            file.samples += 1;
            file.bytes += text.len() as u64;
            let written = file.out.write_all(text);
            written.map_err(|error| write_error(&file.path, error))?;
        }
        Ok(())
    }

    /// Closes the files, and reports their sizes.
    pub(super) fn finish(self, context: &Context) -> Result<(), CliError> {
        let mut stdout = context.stdout();
        for mut file in self.files {
            let flushed = file.out.flush();
            flushed.map_err(|error| write_error(&file.path, error))?;
            let megabytes = file.bytes as f64 / 1024.0 / 1024.0;
            let (path, samples) = (file.path.display(), file.samples);
            writeln!(
                stdout,
                "[ {} script: Wrote {megabytes:.3} MB {path} ({samples} samples) ]",
                context.program
            )?;
        }
        stdout.flush()?;
        Ok(())
    }
}

fn write_error(path: &Path, error: io::Error) -> CliError {
    CliError::failure(
        255,
        anyhow::Error::new(error).context(path.display().to_string()),
    )
}
