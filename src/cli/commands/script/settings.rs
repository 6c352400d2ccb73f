//! The settings of `script`.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_lines::{EventSwitch, FieldSelection};
use rperf_perfdata::Metadata;
use rperf_resolve::Resolver;
use rperf_resolve::SampleCriteria;
use rperf_view::header::HeaderOptions;
use rperf_view::script::Clock;
use rperf_wire::RecordKind;

use super::rows::RowLayout;
use super::{counts, records};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::{RequestedFilters, words};
use crate::cli::findings::report_symbol_problems;
use crate::cli::header;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::switches::SwitchOptions;
use crate::cli::symbol_options::SymbolSources;

/// The default of `--max-stack`: `PERF_MAX_STACK_DEPTH`.
const MAX_STACK: usize = 127;

/// The parsed options.
pub(super) struct ScriptSettings {
    pub(super) selection: FieldSelection,
    /// Whether the header is printed before the samples.
    pub(super) header: bool,
    /// Whether the header includes the complete topology and caches.
    full_header: bool,
    /// Whether only the header is printed.
    pub(super) header_only: bool,
    pub(super) clock: Clock,
    pub(super) nanoseconds: bool,
    /// Whether callchains are shown.
    pub(super) callchains: bool,
    pub(super) max_stack: usize,
    /// Functions whose callers are omitted.
    pub(super) stop_functions: Vec<String>,
    /// Whether kernel modules are shown by path.
    pub(super) kernel_paths: bool,
    /// Whether source files are shown by full path.
    pub(super) full_source_paths: bool,
    /// Whether inlined functions are shown; `None` if neither `--inline` nor `--no-inline` is given.
    pub(super) inlines: Option<bool>,
    /// Whether samples are written as JSON objects, or as rows made from such objects (`--csv`, `--template`).
    pub(super) is_structured: bool,
    /// The layout of `--csv` or `--template`; `None` for JSON and plain text. The caller of [`Self::new`] sets it.
    pub(super) rows: Option<RowLayout>,
    /// Records that are printed among the samples.
    pub(super) records: Vec<RecordKind>,
    /// Maximum number of basic blocks shown per sample; `None` and 0 for no limit.
    pub(super) max_blocks: Option<usize>,
    /// Whether each event's samples are written to a separate file.
    pub(super) per_event_dump: bool,
    /// The options for events that enable and disable the output of samples.
    switches: SwitchOptions,
    /// `-L`: comms in eight columns, CPUs without brackets.
    pub(super) brief: bool,
    /// `-d`: whether the order of samples is checked instead of printing them.
    pub(super) checks_order: bool,
    verbose: bool,
    /// The number of worker threads.
    pub(super) jobs: NonZeroUsize,
    /// Where symbols are read from.
    pub(super) symbols: SymbolSources,
    /// The sample filters.
    filters: RequestedFilters,
    /// The ids of the given options that select samples and do not apply to the counts of `stat record`.
    pub(super) sample_filter_ids: Vec<&'static str>,
}

impl ScriptSettings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Invalid numbers, filters or symbol sources; options that exclude each other.
    pub(super) fn new(
        selection: FieldSelection,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let is_on = |id| flag(matches, id) == Some(true);
        let max_stack = matches.get_one::<u64>("max-stack");
        Ok(Self {
            selection,
            header: is_on("header") || is_on("show-info"),
            full_header: is_on("show-info"),
            header_only: is_on("header-only"),
            clock: clock(matches)?,
            nanoseconds: is_on("ns"),
            callchains: !is_on("hide-call-graph"),
            max_stack: max_stack
                .map_or(MAX_STACK, |max| usize::try_from(*max).unwrap_or(usize::MAX)),
            stop_functions: words(matches, "stop-bt").unwrap_or_default(),
            kernel_paths: is_on("show-kernel-path"),
            full_source_paths: is_on("full-source-path"),
            inlines: flag(matches, "inline"),
            is_structured: is_on("json") || is_on("csv") || matches.contains_id("template"),
            rows: None,
            records: records::requested(matches),
            max_blocks: matches
                .get_one::<u64>("max-blocks")
                .and_then(|max| usize::try_from(*max).ok()),
            per_event_dump: is_on("per-event-dump"),
            switches: SwitchOptions::new(matches),
            brief: is_on("Latency"),
            checks_order: is_on("debug-mode"),
            verbose: context.verbosity(matches) > 0,
            jobs: jobs(matches, context)?,
            symbols: SymbolSources::for_recording(matches, context)?,
            filters: RequestedFilters::new(matches)?,
            sample_filter_ids: counts::sample_filter_ids(matches),
        })
    }

    /// Whether samples are written as CSV.
    pub(super) fn is_csv(&self) -> bool {
        matches!(self.rows, Some(RowLayout::Csv(_)))
    }

    /// The option that selects the output format; only valid if [`Self::is_structured`].
    pub(super) fn format_option(&self) -> &'static str {
        match self.rows {
            None => "--json",
            Some(RowLayout::Csv(_)) => "--csv",
            Some(RowLayout::Template(_)) => "--template",
        }
    }

    /// Reports problems with the symbols that were looked up; with `-v`, all of them.
    pub(super) fn report_symbol_problems(&self, context: &Context, resolver: &Resolver<'_>) {
        report_symbol_problems(context, resolver, self.verbose);
    }

    /// The options for writing the header; `mtime` is the recording's modification time, in seconds since 1970.
    pub(super) fn header_options(&self, mtime: i64) -> HeaderOptions<'static> {
        HeaderOptions {
            full: self.full_header,
            ..header::options(mtime)
        }
    }

    /// The events of `recording` that enable and disable the output of samples.
    ///
    /// # Errors
    ///
    /// Status 255: names that no event has.
    pub(super) fn switch(&self, recording: Metadata<'_>) -> Result<EventSwitch, CliError> {
        self.switches.find(recording)
    }

    /// The sample filter for `recording`.
    ///
    /// # Errors
    ///
    /// A filter on data that the recording lacks.
    pub(super) fn filter(&self, recording: Metadata<'_>) -> Result<SampleCriteria, CliError> {
        // With `--reltime`, the times given to `--time` count from the first sample, too.
        let is_relative = self.clock == Clock::SinceFirst;
        self.filters.filter(recording, is_relative)
    }
}

fn clock(matches: &ArgMatches) -> Result<Clock, CliError> {
    let is_on = |id| flag(matches, id) == Some(true);
    match (is_on("reltime"), is_on("deltatime")) {
        (true, true) => Err(CliError::message(
            255,
            "reltime and deltatime - the two don't get along well. Please limit to --reltime or --deltatime.",
        )),
        (true, false) => Ok(Clock::SinceFirst),
        (false, true) => Ok(Clock::SinceBefore),
        (false, false) => Ok(Clock::Recorded),
    }
}
