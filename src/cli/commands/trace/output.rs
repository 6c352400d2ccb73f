//! Writes whole lines to the standard error or to a file.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::trace::{CallSummary, TraceLine, TraceSink};
use rperf_safefs::{WriteMode, open_output};
use rperf_syscalls::SyscallTable;
use rperf_view::terminal::escaped;
use rperf_view::trace::{
    SummaryMode, SummaryOptions, TraceLayout, write_json, write_line, write_summary,
};

use super::exec_tree::ExecTree;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::live::workload;
use crate::cli::options::flag;
use crate::cli::output::OutputStreams;

/// The number of pending bytes at which they are written.
const FLUSH_SIZE: usize = 64 << 10;

/// Formats lines and writes them with few system calls.
pub(super) struct TracePrinter {
    layout: TraceLayout,
    /// The tree that is printed at the end instead of lines.
    tree: Option<ExecTree>,
    /// The time in nanoseconds of the first selected call or other event, from which the times of lines are counted.
    base: Option<u64>,
    pending: Vec<u8>,
    /// `None` for the standard error.
    file: Option<File>,
    /// The first error in writing to the file. Nothing is written after it.
    result: std::io::Result<()>,
}

impl TracePrinter {
    /// Opens the file of `-o`.
    pub(super) fn open(matches: &ArgMatches, layout: TraceLayout) -> Result<Self, CliError> {
        let file = match matches.get_one::<String>("output") {
            None => None,
            Some(path) => {
                let opened = open_output(Path::new(path), WriteMode::Truncate);
                Some(opened.map_err(|error| {
                    let cause = reason(&error);
                    CliError::message(255, format!("failed to create output file {path}: {cause}"))
                })?)
            }
        };
        Ok(Self {
            layout,
            tree: (flag(matches, "exec-tree") == Some(true))
                .then(|| ExecTree::new(&workload::workload_words(matches))),
            base: None,
            pending: Vec::new(),
            file,
            result: Ok(()),
        })
    }

    /// Writes the pending lines.
    pub(super) fn flush(&mut self) {
        if self.pending.is_empty() || self.result.is_err() {
            return;
        }
        match &mut self.file {
            None => OutputStreams::error(&String::from_utf8_lossy(&self.pending)),
            Some(file) if file.is_terminal() => {
                let text = String::from_utf8_lossy(&self.pending);
                self.result = file.write_all(escaped(&text).as_bytes());
            }
            Some(file) => self.result = file.write_all(&self.pending),
        }
        self.pending.clear();
    }

    /// Writes the pending lines or the tree of processes, and the summary. Returns the first error in writing.
    pub(super) fn finish(
        mut self,
        summary: Option<(&CallSummary, &SyscallTable, SummaryOptions)>,
    ) -> Result<(), CliError> {
        if let Some(tree) = &self.tree {
            tree.write(&mut self.pending)?;
        }
        if let Some((summary, table, options)) = summary {
            let total = (options.mode == SummaryMode::Total).then(|| summary.total());
            let summary = total.as_ref().unwrap_or(summary);
            write_summary(&mut self.pending, summary, table, options)?;
        }
        self.flush();
        self.result.map_err(CliError::from)
    }
}

impl TraceSink for TracePrinter {
    fn begin(&mut self, time: u64) {
        self.base.get_or_insert(time);
    }

    fn line(&mut self, line: &TraceLine<'_>) -> bool {
        if let Some(tree) = &mut self.tree {
            tree.add(line);
            // More lines are wanted: nothing is written that could fail.
            return true;
        }
        // Only a line of lost records can precede the first event.
        let base = self.base.or(line.time).unwrap_or_default();
        // Writing to memory does not fail.
        let _ = match self.layout.is_json {
            true => write_json(&mut self.pending, line),
            false => write_line(&mut self.pending, line, base, self.layout),
        };
        if self.pending.len() >= FLUSH_SIZE {
            self.flush();
        }
        self.result.is_ok()
    }
}
