//! The settings of a report, grouped by subject: callchains, filters, events, cells.

use clap::ArgMatches;
use regex::Regex;
use rperf_hist::HistogramOptions;

use super::super::call_graph::CallGraphFormat;
use super::super::mode::time_quantum;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::report_options::{is_relative, regex};

/// The default of `--max-stack`: the kernel's default maximum of frames of a callchain.
const MAX_STACK: usize = 127;

/// How callchains are counted and shown.
pub(super) struct ChainSettings {
    /// `--children` or the configuration's `report.children`; `None` if neither is given.
    pub(super) children: Option<bool>,
    /// `--show-ref-call-graph`.
    pub(super) reference_call_graphs: bool,
    pub(super) graph: CallGraphFormat,
    pub(super) max_stack: usize,
    pub(super) hide_unresolved: bool,
}

impl ChainSettings {
    pub(super) fn new(matches: &ArgMatches, context: &Context, graph: CallGraphFormat) -> Self {
        let children = flag(matches, "children");
        let max_stack = matches.get_one::<u64>("max-stack");
        Self {
            children: children.or_else(|| context.config.flag("report.children")),
            reference_call_graphs: flag(matches, "show-ref-call-graph") == Some(true),
            graph,
            max_stack: max_stack
                .map_or(MAX_STACK, |max| usize::try_from(*max).unwrap_or(usize::MAX)),
            hide_unresolved: flag(matches, "hide-unresolved") == Some(true),
        }
    }
}

/// Filters on symbols and callers.
pub(super) struct SymbolFilters {
    /// `-p`.
    pub(super) parent: Option<Regex>,
    pub(super) exclude_other: bool,
    pub(super) ignore_callees: Option<Regex>,
    pub(super) symbol_filter: Option<String>,
    /// Whether percentages are relative to the filtered total.
    pub(super) relative: bool,
}

impl SymbolFilters {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        Ok(Self {
            parent: regex(matches, "parent")?,
            exclude_other: flag(matches, "exclude-other") == Some(true),
            ignore_callees: regex(matches, "ignore-callees")?,
            symbol_filter: matches.get_one::<String>("symbol-filter").cloned(),
            relative: is_relative(matches, context)?,
        })
    }
}

/// How several events are shown.
pub(super) struct EventDisplay {
    /// `--group` or the configuration's `report.group`: whether the events of a group share a table; `None` if neither is given.
    pub(super) group: Option<bool>,
    /// The position in its group of the event by which rows are sorted; 0 is the leader.
    pub(super) sort_event: usize,
    /// Whether events without samples are skipped.
    pub(super) skip_empty: bool,
}

impl EventDisplay {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Self {
        let group = flag(matches, "group");
        let sort_event = matches.get_one::<u64>("group-sort-idx");
        Self {
            group: group.or_else(|| context.config.flag("report.group")),
            sort_event: sort_event
                .map_or(0, |number| usize::try_from(*number).unwrap_or(usize::MAX)),
            skip_empty: flag(matches, "skip-empty")
                .or_else(|| context.config.flag("report.skip-empty"))
                != Some(false),
        }
    }
}

/// How cells are written.
pub(super) struct CellFormat {
    /// The interval of the key `time`, in nanoseconds.
    pub(super) time_quantum: u64,
    pub(super) nanoseconds: bool,
    pub(super) full_paths: bool,
    /// `-v`: symbols with addresses, and objects with paths.
    pub(super) verbose: bool,
}

impl CellFormat {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let quantum = matches.get_one::<String>("time-quantum");
        let quantum = quantum.map(|text| time_quantum(text)).transpose()?;
        Ok(Self {
            time_quantum: quantum.unwrap_or(HistogramOptions::TIME_QUANTUM),
            nanoseconds: flag(matches, "ns") == Some(true),
            full_paths: flag(matches, "full-source-path") == Some(true),
            verbose: context.verbosity(matches) > 0,
        })
    }
}
