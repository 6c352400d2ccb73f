//! What the options of `script` ask for.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_lines::{EventSwitch, Selection};
use rperf_perfdata::Described;
use rperf_resolve::Filter;
use rperf_resolve::Resolver;
use rperf_view::header::HeaderOptions;
use rperf_view::script::Clock;
use rperf_wire::RecordKind;

use super::records;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::{Wanted, words};
use crate::cli::findings::tell_of_symbols;
use crate::cli::header;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::switches::SwitchOptions;
use crate::cli::symbol_options::Symbols;

/// Frames of a callchain that are shown, `PERF_MAX_STACK_DEPTH`.
const MAX_STACK: usize = 127;

/// The options, read.
pub(super) struct Settings {
    pub(super) selection: Selection,
    /// The header before the samples.
    pub(super) header: bool,
    /// Topology and caches in the header, not only that they are there.
    full_header: bool,
    /// The header, and nothing more.
    pub(super) header_only: bool,
    pub(super) clock: Clock,
    pub(super) nanoseconds: bool,
    /// Whether callchains are shown.
    pub(super) callchains: bool,
    pub(super) max_stack: usize,
    /// Functions whose callers are left out.
    pub(super) stop: Vec<String>,
    /// Modules by the path of their file.
    pub(super) kernel_paths: bool,
    /// Source files by their whole path.
    pub(super) full_source_paths: bool,
    /// Whether inlined functions are shown, if that was said.
    pub(super) inlines: Option<bool>,
    /// Whether samples are written as JSON objects.
    pub(super) objects: bool,
    /// Records that are shown beside samples.
    pub(super) records: Vec<RecordKind>,
    /// Stretches between branches that are shown.
    pub(super) max_blocks: Option<usize>,
    /// Whether each event's samples go into a file of their own.
    pub(super) per_event: bool,
    /// Events that switch others on and off.
    switches: SwitchOptions,
    /// `-L`: short names, CPUs without brackets.
    pub(super) brief: bool,
    /// Whether the order of samples is checked, and nothing printed.
    pub(super) checks: bool,
    verbose: bool,
    /// Threads to work with.
    pub(super) jobs: NonZeroUsize,
    /// Where symbols are looked for, if not in the usual places.
    pub(super) symbols: Symbols,
    /// Which samples are shown.
    wanted: Wanted,
}

impl Settings {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Words that are no fields, no numbers; options that exclude each other.
    pub(super) fn new(
        selection: Selection,
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
                .map_or(MAX_STACK, |max| usize::try_from(*max).unwrap_or(MAX_STACK)),
            stop: words(matches, "stop-bt").unwrap_or_default(),
            kernel_paths: is_on("show-kernel-path"),
            full_source_paths: is_on("full-source-path"),
            inlines: flag(matches, "inline"),
            objects: is_on("json"),
            records: records::shown(matches),
            max_blocks: matches
                .get_one::<u64>("max-blocks")
                .and_then(|max| usize::try_from(*max).ok()),
            per_event: is_on("per-event-dump"),
            switches: SwitchOptions::new(matches),
            brief: is_on("Latency"),
            checks: is_on("debug-mode"),
            verbose: context.verbosity(matches) > 0,
            jobs: jobs(matches, context)?,
            symbols: Symbols::new(matches, context)?,
            wanted: Wanted::new(matches)?,
        })
    }

    /// What there is to say about the symbols that were wanted; with `-v`, all of it.
    pub(super) fn tell(&self, context: &Context, resolver: &Resolver<'_>) {
        tell_of_symbols(context, resolver, self.verbose);
    }

    /// How the header is written, of a recording that was last changed then (in seconds since 1970).
    pub(super) fn header_options(&self, changed: i64) -> HeaderOptions<'static> {
        HeaderOptions {
            full: self.full_header,
            ..header::options(changed)
        }
    }

    /// Which samples of `recording` others switch on and off.
    ///
    /// # Errors
    ///
    /// Status 255: names that no event has.
    pub(super) fn switch(&self, recording: Described<'_>) -> Result<EventSwitch, CliError> {
        self.switches.find(recording)
    }

    /// Which samples of `recording` are shown.
    ///
    /// # Errors
    ///
    /// What is asked for that the recording does not tell.
    pub(super) fn filter(&self, recording: Described<'_>) -> Result<Filter, CliError> {
        self.wanted
            .filter(recording, self.clock == Clock::SinceFirst)
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
