//! The settings of a report, from the command line and the configuration.

mod groups;

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::ArgMatches;
use regex::Regex;
use rperf_hist::{
    CountedItems, Direction, GraphOptions, HistogramOptions, Key, NumberField, Parallelism,
    ReportField, has_weight_parts,
};
use rperf_perfdata::{EventDesc, Metadata};
use rperf_view::report::ReportLayout;
use rperf_wire::SampleType;

use self::groups::{CellFormat, ChainSettings, EventDisplay, SymbolFilters};
use super::args::COLOR;
use super::call_graph::{self, CallGraphFormat};
use super::data_output::DataFormat;
use super::mode::{CountMode, default_keys};
use crate::cli::color::color_csi;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::event_tables::{TableEvents, tables};
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::shared::columns::{self, ColumnOptions, ResolvedColumns};
use crate::cli::shared::report_options::{DEFAULT_PARENT_PATTERN, compile, separator, widths};
use crate::cli::shared::tracepoints::RecordedTracepoints;
use crate::cli::stack_folding::has_branches;
use crate::cli::symbol_options::SymbolSources;

/// The default sort keys of `--branch-history`.
const HISTORY_KEYS: &str = "srcline,symbol,dso";

/// The settings of one run.
pub(super) struct ReportSettings {
    columns: ColumnOptions,
    mode: CountMode,
    chains: ChainSettings,
    filters: SymbolFilters,
    /// How the events are shown; the events themselves are those of the recording.
    events: EventDisplay,
    cells: CellFormat,
    /// The layout of the text.
    pub(super) layout: ReportLayout,
    /// `--total-cycles`.
    total_cycles: bool,
    /// `--latency`: the columns of latency are before those of overhead.
    latency_first: bool,
    /// `-q`: rows only.
    pub(super) quiet: bool,
    /// Output for programs instead of text.
    pub(super) data_format: Option<DataFormat>,
    /// `--raw-trace`.
    pub(super) raw_trace: bool,
    /// The number of worker threads.
    pub(super) jobs: NonZeroUsize,
    /// The sources of symbols.
    pub(super) symbols: SymbolSources,
}

/// The content of a report, according to the settings and the recording.
struct ReportShape {
    counted: CountedItems,
    /// Whether the recording has no callchains; false for a pipe, as in perf, which checks this before it reads
    /// the events of a pipe.
    lacks_callchains: bool,
    /// Whether there are callchains or branch stacks that call graphs can show.
    has_chains: bool,
    /// Whether call graphs show details of branch stacks: `--branch-history` is given (`chains.graph.history`), and the recording
    /// has branch stacks.
    history: bool,
    /// Whether rows include their callees (`--children`).
    children: bool,
    /// The order of callchains unless one is given.
    order: Direction,
}

/// The error for an option that needs callchains.
fn no_callchains(option: &str) -> CliError {
    CliError::message(
        255,
        format!("{option} was given, but the samples have no callchains"),
    )
    .hint("record callchains with 'record -g'")
}

impl ReportSettings {
    /// Reads options and configuration, and tells the context's output whether `-q` is given.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let columns = ColumnOptions::new(matches, context);
        let data_format = DataFormat::requested(matches)?;
        let mut graph = CallGraphFormat::new(matches, context)?;
        if let Some(format) = data_format {
            if graph.demanded {
                return Err(format.call_graph_error());
            }
            graph.shown = false;
        }
        let quiet = flag(matches, "quiet") == Some(true);
        context.output.set_quiet(quiet);
        let switch = |id| flag(matches, id);
        let text = |id| matches.get_one::<String>(id).map(String::as_str);
        let jobs = jobs(matches, context)?;
        Ok(Self {
            layout: ReportLayout {
                min_percent: call_graph::min_row_percent(matches, context)?.unwrap_or_default(),
                // `plan` sets it.
                titles_own_as_self: false,
                widths: text("column-widths").map_or(Ok(Vec::new()), widths)?,
                separator: text("field-separator").map(separator),
                graph_form: graph.form,
                graph_value: graph.value,
                graph_limit: graph.max_children,
                skips_first_frame: columns.begins_with_symbol(),
                hierarchy: hierarchy(matches)?,
                colors: color_csi(context, COLOR, text(COLOR))?,
                escapes: context.output.is_terminal(),
                threads: Some(jobs),
            },
            columns,
            mode: CountMode::new(matches),
            cells: CellFormat::new(matches, context)?,
            raw_trace: switch("raw-trace") == Some(true),
            jobs,
            chains: ChainSettings::new(matches, context, graph),
            events: EventDisplay::new(matches, context),
            total_cycles: switch("total-cycles") == Some(true),
            latency_first: switch("latency") == Some(true),
            filters: SymbolFilters::new(matches, context)?,
            quiet,
            data_format,
            symbols: SymbolSources::for_recording(matches, context)?,
        })
    }

    /// The tables to show, and their events.
    pub(super) fn tables(&self, recording: Metadata<'_>) -> Vec<TableEvents> {
        tables(recording, self.events.group)
    }

    /// Returns the items to count in this recording, and how they are shown. `parallelism` is `None` if the recording has no
    /// context switches.
    pub(super) fn plan(
        &self,
        recording: Metadata<'_>,
        tracepoints: &mut RecordedTracepoints<'_>,
        parallelism: Option<Parallelism>,
    ) -> Result<ReportPlan, CliError> {
        let shape = self.shape(recording)?;
        if self.total_cycles && shape.counted != CountedItems::Branches {
            return Err(no_branches("--total-cycles"));
        }
        let default = match self.chains.graph.history {
            true => HISTORY_KEYS,
            false => default_keys(shape.counted, recording, self.raw_trace),
        };
        let most_running = parallelism.as_ref().map(Parallelism::maximum);
        // If at most one thread runs at a time, latency equals overhead.
        let shows_latency = most_running.is_some_and(|most| most > 1);
        let ResolvedColumns {
            columns,
            order_by,
            single_values: constant_columns,
        } = self.columns.resolve(
            default,
            &self.shares(shape.children, shows_latency),
            &mut |option, word| tracepoints.find(option, word),
        )?;
        columns::check(columns.iter().chain(&order_by), shape.counted)?;
        let needs_parallelism = columns.iter().chain(&order_by).any(depends_on_parallelism);
        if parallelism.is_none() && (needs_parallelism || self.latency_first) {
            return Err(no_latency());
        }
        let layout = ReportLayout {
            titles_own_as_self: shape.children && !self.columns.replaces_columns(),
            ..self.layout.clone()
        };
        let options = HistogramOptions {
            parent: self.parent(&order_by, shape.lacks_callchains)?,
            columns,
            order_by,
            parallelism: parallelism.map(Arc::new),
            ..self.options(&shape, recording)
        };
        Ok(ReportPlan {
            access_sort_keys: self.mode.access_sort_keys(shape.counted).map(str::to_owned),
            shows_blocks: self.total_cycles,
            options,
            layout,
            constant_columns,
        })
    }

    /// Returns the options except those for columns, the order of rows, parallelism and `parent`: [`Self::plan`] sets these.
    fn options(&self, shape: &ReportShape, recording: Metadata<'_>) -> HistogramOptions {
        let events = recording.events.iter();
        // By event, whether its weights have parts.
        let parts = events.map(|event| has_weight_parts(event.attr.sample_type));
        HistogramOptions {
            counted: shape.counted,
            children: shape.children,
            direction: self.chains.graph.order.unwrap_or(shape.order),
            graph: self.graph(shape),
            reference_call_graphs: self.chains.reference_call_graphs,
            max_stack: self.chains.max_stack,
            branch_chains: self.chains.graph.branches,
            hide_unresolved: self.chains.hide_unresolved,
            exclude_other: self.filters.exclude_other,
            ignore_callees: self.filters.ignore_callees.clone(),
            symbol_filter: self.filters.symbol_filter.clone(),
            relative: self.filters.relative,
            time_quantum: self.cells.time_quantum,
            nanoseconds: self.cells.nanoseconds,
            full_paths: self.cells.full_paths,
            addresses: self.cells.verbose,
            sort_event: self.events.sort_event,
            weight_parts: parts.collect(),
            ..HistogramOptions::default()
        }
    }

    /// Returns the items to count, and the available callchains.
    fn shape(&self, recording: Metadata<'_>) -> Result<ReportShape, CliError> {
        let events = recording.events;
        let has_callchain = |event: &EventDesc| {
            let sample_type = event.attr.sample_type;
            sample_type.contains(SampleType::CALLCHAIN)
        };
        let has_callchains = events.iter().any(has_callchain);
        let lacks_callchains = !has_callchains && !recording.is_pipe;
        let history = self.chains.graph.history && events.iter().any(has_branches);
        if self.chains.graph.demanded && lacks_callchains && !history {
            return Err(match self.chains.graph.history {
                true => no_branches("--branch-history"),
                false => no_callchains("-g"),
            });
        }
        let counted = match self.chains.graph.history {
            true => CountedItems::Samples,
            false => self.mode.counted(recording)?,
        };
        let callchains = has_callchains && counted != CountedItems::Branches;
        // As in perf: if neither `--children` nor `--no-children` is given, the rows of a recording from a pipe do not include
        // callees, but its callchains, like those of `--branch-history`, begin with the outermost caller.
        let wants_children = self.chains.children.unwrap_or(!recording.is_pipe) && callchains;
        let is_default = self.chains.children.is_none();
        let caller_first = wants_children || (is_default && (recording.is_pipe || history));
        Ok(ReportShape {
            counted,
            lacks_callchains,
            has_chains: callchains || history,
            history,
            children: wants_children && !self.layout.hierarchy && counted != CountedItems::Accesses,
            order: match caller_first {
                true => Direction::Caller,
                false => Direction::Callee,
            },
        })
    }

    fn graph(&self, shape: &ReportShape) -> Option<GraphOptions> {
        (self.chains.graph.shown && shape.has_chains).then_some(GraphOptions {
            form: self.chains.graph.form,
            min_percent: self.chains.graph.min_percent,
            by_address: self.chains.graph.by_address,
            by_line: self.chains.graph.by_line,
            annotates_branches: shape.history,
        })
    }

    /// The numeric columns at the start of a row; rows are sorted by the first. With `children`, each row has the total with its
    /// callees and its own share.
    fn shares(&self, children: bool, shows_latency: bool) -> Vec<NumberField> {
        let (overhead, latency) = match children {
            true => (
                [NumberField::Total, NumberField::Own].as_slice(),
                [NumberField::TotalLatency, NumberField::Latency].as_slice(),
            ),
            false => (
                [NumberField::Own].as_slice(),
                [NumberField::Latency].as_slice(),
            ),
        };
        let pairs = overhead.iter().zip(latency);
        let pair = |(overhead, latency): (&NumberField, &NumberField)| match self.latency_first {
            true => [*latency, *overhead],
            false => [*overhead, *latency],
        };
        let numbers = pairs.flat_map(pair);
        let is_shown =
            |number: &NumberField| self.latency_first || shows_latency || !number.is_latency();
        numbers.filter(is_shown).collect()
    }

    /// The pattern to search callchains for, if `order_by`, which contains all columns, or the filter `exclude_other` needs it.
    fn parent(
        &self,
        order_by: &[ReportField],
        lacks_callchains: bool,
    ) -> Result<Option<Regex>, CliError> {
        let mut keys = order_by.iter().filter_map(|field| field.key());
        match keys.any(Key::shows_parent) {
            true if lacks_callchains => return Err(no_callchains("--sort parent")),
            false if !self.filters.exclude_other => return Ok(None),
            _ => {}
        }
        match &self.filters.parent {
            Some(parent) => Ok(Some(parent.clone())),
            None => compile("parent", DEFAULT_PARENT_PATTERN).map(Some),
        }
    }

    /// Whether events without samples are skipped.
    pub(super) fn skips_empty(&self) -> bool {
        self.events.skip_empty
    }

    /// Whether symbols are shown with addresses, and objects with paths.
    pub(super) fn is_verbose(&self) -> bool {
        self.cells.verbose
    }

    /// Sets whether addresses and paths are shown.
    pub(super) fn set_verbose(&mut self, on: bool) {
        self.cells.verbose = on;
    }

    /// A tip for this report.
    pub(super) fn tip(&self) -> &'static str {
        if self.chains.children != Some(false) && self.chains.graph.shown {
            "--no-children shows own overhead, with callers below each function"
        } else if !self.columns.has_single_key() {
            "-s dso or -s comm give an overview by object or by command"
        } else {
            "-s comm,dso,symbol shows functions"
        }
    }
}

/// The plan for one recording.
pub(super) struct ReportPlan {
    pub(super) options: HistogramOptions,
    pub(super) layout: ReportLayout,
    /// The sort keys to print, if memory accesses are counted.
    pub(super) access_sort_keys: Option<String>,
    /// Whether basic blocks between branches are shown instead of rows.
    pub(super) shows_blocks: bool,
    /// Columns that a filter restricts to a single value, with that value. They are left out if another key remains.
    pub(super) constant_columns: Vec<(&'static str, String)>,
}

/// Whether a field depends on parallelism.
fn depends_on_parallelism(field: &ReportField) -> bool {
    match field {
        ReportField::Number(number) => number.is_latency(),
        ReportField::Key(key) => key.shows_parallelism(),
    }
}

/// The error for latencies or `--parallelism` without recorded context switches.
pub(super) fn no_latency() -> CliError {
    let message = "Use of latency profile or parallelism requires --latency flag during record.";
    CliError::message(255, message).hint("record context switches with 'record --latency'")
}

fn no_branches(option: &str) -> CliError {
    let message = format!("{option} was given, but the samples have no branch stacks");
    CliError::message(255, message).hint("record branch stacks with 'record -b'")
}

/// Whether `--hierarchy` is given, which excludes `--fields`.
fn hierarchy(matches: &ArgMatches) -> Result<bool, CliError> {
    let is_given = flag(matches, "hierarchy") == Some(true);
    if is_given && matches.contains_id("fields") {
        let message = "--hierarchy and --fields options cannot be used together";
        return Err(CliError::usage(message).hint("choose the levels with -s"));
    }
    Ok(is_given)
}
