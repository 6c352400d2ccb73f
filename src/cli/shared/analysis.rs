//! A recording opened for analysis: setup and final checks of commands that read samples.

use std::cell::Cell;
use std::num::NonZeroUsize;

use rperf_perfdata::{Metadata, PerfData};
use rperf_replay::{DecodeErrors, Replay};
use rperf_resolve::Resolver;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::conclude;
use crate::cli::input::Input;
use crate::cli::progress::ProgressDisplay;
use crate::cli::symbol_options::SymbolSources;
use crate::cli::symbols::replay;

/// A recording after pass 1 of [`Replay`], which reads all record headers and builds the World (the processes and mappings by
/// time); with the progress line of this and later passes.
pub(crate) struct Analysis<'a> {
    pub(crate) context: &'a Context,
    pub(crate) input: &'a Input,
    pub(crate) replay: Replay<'a>,
    /// The number of threads.
    pub(crate) jobs: NonZeroUsize,
    progress: Cell<Option<ProgressDisplay>>,
}

impl<'a> Analysis<'a> {
    /// Runs pass 1 over the records of `input`, parsed as `data`, for a command that prints nothing while it reads.
    ///
    /// # Errors
    ///
    /// The recording cannot be replayed.
    pub(crate) fn open(
        input: &'a Input,
        data: &'a PerfData<'a>,
        jobs: NonZeroUsize,
        context: &'a Context,
    ) -> Result<Self, CliError> {
        let progress = ProgressDisplay::start(context, data.data().len());
        Self::with_progress(input, data, jobs, progress, context)
    }

    /// Runs pass 1 as [`Analysis::open`] does, for a command that prints rows while it reads: progress is not shown if its output
    /// is a terminal.
    ///
    /// # Errors
    ///
    /// Those of [`Analysis::open`].
    pub(crate) fn open_for_rows(
        input: &'a Input,
        data: &'a PerfData<'a>,
        jobs: NonZeroUsize,
        context: &'a Context,
    ) -> Result<Self, CliError> {
        let progress = ProgressDisplay::for_text_output(context, data.data().len());
        Self::with_progress(input, data, jobs, progress, context)
    }

    /// Runs pass 1 as [`Analysis::open`] does, with the progress line `progress`.
    ///
    /// # Errors
    ///
    /// Those of [`Analysis::open`].
    pub(crate) fn with_progress(
        input: &'a Input,
        data: &'a PerfData<'a>,
        jobs: NonZeroUsize,
        progress: ProgressDisplay,
        context: &'a Context,
    ) -> Result<Self, CliError> {
        Ok(Self {
            context,
            input,
            replay: replay(data, jobs, &progress)?,
            jobs,
            progress: Cell::new(Some(progress)),
        })
    }

    /// Returns the recording.
    pub(crate) fn data(&self) -> &'a PerfData<'a> {
        self.replay.data()
    }

    /// Returns the recording's events and features.
    pub(crate) fn metadata(&self) -> Metadata<'a> {
        self.data().metadata()
    }

    /// Returns the resolver configured by the symbol options.
    pub(crate) fn resolver<'w>(&'w self, symbols: &'w SymbolSources) -> Resolver<'w> {
        symbols.resolver(self.context, self.replay.world(), self.data().features())
    }

    /// Removes the progress line before the command prints.
    pub(crate) fn end_progress(&self) {
        drop(self.progress.take());
    }

    /// Ends the progress line and warns about lost, late or skipped records, after all passes.
    ///
    /// # Errors
    ///
    /// Status 255: reading stopped before the end of the recording. Status 1: records could not be decoded.
    pub(crate) fn conclude(&self) -> Result<(), CliError> {
        self.conclude_with(DecodeErrors::default())
    }

    /// Like [`Analysis::conclude`]; `bad` are further records, which the command could not decode.
    ///
    /// # Errors
    ///
    /// Those of [`Analysis::conclude`].
    pub(crate) fn conclude_with(&self, bad: DecodeErrors) -> Result<(), CliError> {
        self.end_progress();
        let mut diagnostics = self.replay.diagnostics();
        diagnostics.bad_records.merge(bad);
        let is_truncated = self.data().is_truncated() || self.input.is_truncated_copy;
        conclude(&self.input.path, is_truncated, &diagnostics, self.context)
    }
}

/// Returns the socket of each CPU, by CPU number; empty if not recorded.
pub(crate) fn sockets(recording: Metadata<'_>) -> Vec<i32> {
    let topology = recording.features.cpu_topology();
    let cpus = topology.map(|topology| topology.cpus).unwrap_or_default();
    cpus.iter().map(|cpu| cpu.socket).collect()
}
