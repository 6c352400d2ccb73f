//! What the command line and the configuration ask of a report.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clap::ArgMatches;
use regex::Regex;
use rperf_hist::{
    Counted, Direction, Field, GraphOptions, Key, Number, Options, Parallelism, has_weight_parts,
};
use rperf_perfdata::{Described, EventDesc};
use rperf_view::report::Layout;
use rperf_wire::SampleType;

use super::args::COLOR;
use super::call_graph::{self, CallGraph};
use super::columns::{self, Columns, Resolved};
use super::mode::{Mode, time_quantum, usual_keys};
use super::tracepoints::Tracepoints;
use crate::cli::color::paints;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::groups::{Table, tables};
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::symbol_options::Symbols;

/// Frames of a callchain that count, as many as kernels record by default.
const MAX_STACK: usize = 127;

/// What the key `parent` shows where nothing is said: system calls and page faults.
const PARENT: &str = "^sys_|^do_page_fault";

/// The rows of `--branch-history` where nothing else is said.
const HISTORY_KEYS: &str = "srcline,symbol,dso";

/// The settings of one run.
pub(super) struct Settings {
    columns: Columns,
    mode: Mode,
    time_quantum: u64,
    nanoseconds: bool,
    full_paths: bool,
    /// `-v`.
    verbose: bool,
    /// The event of a group that rows are ordered by.
    sort_event: usize,
    /// `None` where nothing is said.
    children: Option<bool>,
    lent_graphs: bool,
    graph: CallGraph,
    /// How the text is laid out.
    pub(super) layout: Layout,
    /// `--total-cycles`.
    total_cycles: bool,
    /// `--latency`.
    latency_first: bool,
    /// Whether groups of events share a table, if that was said.
    group: Option<bool>,
    max_stack: usize,
    hide_unresolved: bool,
    /// `-p`.
    parent: Option<Regex>,
    exclude_other: bool,
    ignore_callees: Option<Regex>,
    symbol_filter: Option<String>,
    /// Whether shares are of what filters leave.
    relative: bool,
    /// Whether events without samples are left out.
    pub(super) skip_empty: bool,
    /// `-q`: rows alone.
    pub(super) quiet: bool,
    /// `--raw-trace`.
    pub(super) raw_trace: bool,
    /// Threads to work with.
    pub(super) jobs: NonZeroUsize,
    /// Where symbols are looked for, if not in the usual places.
    pub(super) symbols: Symbols,
}

/// What a report is of, as settings and a recording have it together.
struct Shape {
    counted: Counted,
    /// The recording has none.
    lacks_callchains: bool,
    /// There are some to show.
    chains: bool,
    /// They begin with branches.
    history: bool,
    /// Rows count what they called, too.
    children: bool,
    /// From where chains are shown unless that is said.
    order: Direction,
}

/// The refusal of what needs callchains.
fn no_callchains(asked: &str) -> CliError {
    CliError::message(255, format!("{asked}, but the samples have no callchains"))
        .hint("callchains are recorded with 'record -g'")
}

impl Settings {
    /// Reads options and configuration.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let columns = Columns::new(matches, context);
        let graph = CallGraph::new(matches, context)?;
        let quiet = flag(matches, "quiet") == Some(true);
        context.output.set_quiet(quiet);
        let switch = |id| flag(matches, id);
        let children = switch("children").or_else(|| context.config.flag("report.children"));
        let text = |id| matches.get_one::<String>(id).map(String::as_str);
        let max_stack = matches.get_one::<u64>("max-stack");
        Ok(Self {
            layout: Layout {
                min_percent: call_graph::least_row(matches, context)?.unwrap_or_default(),
                own_is_self: false,
                widths: text("column-widths").map_or(Ok(Vec::new()), widths)?,
                separator: text("field-separator").map(separator),
                graph_form: graph.form,
                graph_value: graph.value,
                graph_limit: graph.limit,
                skip_symbol: columns.begins_with_symbol(),
                hierarchy: hierarchy(matches)?,
                colors: paints(context, COLOR, text(COLOR))?,
                escapes: context.output.is_terminal(),
            },
            columns,
            mode: Mode::new(matches),
            time_quantum: text("time-quantum").map_or(Ok(Options::TIME_QUANTUM), time_quantum)?,
            nanoseconds: switch("ns") == Some(true),
            full_paths: switch("full-source-path") == Some(true),
            verbose: context.verbosity(matches) > 0,
            sort_event: sort_event(matches),
            raw_trace: switch("raw-trace") == Some(true),
            jobs: jobs(matches, context)?,
            children,
            lent_graphs: switch("show-ref-call-graph") == Some(true),
            graph,
            total_cycles: switch("total-cycles") == Some(true),
            latency_first: switch("latency") == Some(true),
            group: switch("group").or_else(|| context.config.flag("report.group")),
            max_stack: max_stack
                .map_or(MAX_STACK, |max| usize::try_from(*max).unwrap_or(MAX_STACK)),
            hide_unresolved: switch("hide-unresolved") == Some(true),
            parent: regex(matches, "parent")?,
            exclude_other: switch("exclude-other") == Some(true),
            ignore_callees: regex(matches, "ignore-callees")?,
            symbol_filter: text("symbol-filter").map(str::to_owned),
            relative: text("percentage").map_or(Ok(false), is_relative)?,
            skip_empty: switch("skip-empty") != Some(false),
            quiet,
            symbols: Symbols::new(matches, context)?,
        })
    }

    /// The tables that events make.
    pub(super) fn tables(&self, recording: Described<'_>) -> Vec<Table> {
        tables(recording, self.group)
    }

    /// What is to be counted in a recording with or without callchains, and how it is shown.
    pub(super) fn plan(
        &self,
        recording: Described<'_>,
        tracepoints: &mut Tracepoints<'_>,
        parallelism: Option<Parallelism>,
    ) -> Result<Plan, CliError> {
        let shape = self.shape(recording)?;
        if self.total_cycles && shape.counted != Counted::Branches {
            return Err(no_branches("--total-cycles"));
        }
        let usual = match self.graph.history {
            true => HISTORY_KEYS,
            false => usual_keys(shape.counted, recording, self.raw_trace),
        };
        let threads = parallelism.as_ref().map(Parallelism::most);
        let shows_latency = threads.is_some_and(|most| most > 1);
        let Resolved {
            columns,
            order_by,
            values,
        } = self.columns.resolve(
            usual,
            &self.shares(shape.children, shows_latency),
            &mut |option, word| tracepoints.find(option, word),
        )?;
        columns::check(columns.iter().chain(&order_by), shape.counted)?;
        let asked = columns.iter().chain(&order_by).any(is_of_latency);
        if parallelism.is_none() && (asked || self.latency_first) {
            return Err(no_latency());
        }
        let layout = Layout {
            own_is_self: shape.children && !self.columns.is_exact(),
            ..self.layout.clone()
        };
        let options = Options {
            parent: self.parent(&order_by, shape.lacks_callchains)?,
            columns,
            order_by,
            parallelism: parallelism.map(Arc::new),
            ..self.options(&shape, recording)
        };
        Ok(Plan {
            costs_by: self.mode.costs_by(shape.counted).map(str::to_owned),
            shows_blocks: self.total_cycles,
            options,
            layout,
            values,
        })
    }

    /// What does not depend on columns.
    fn options(&self, shape: &Shape, recording: Described<'_>) -> Options {
        let events = recording.events.iter();
        let parts = events.map(|event| has_weight_parts(event.attr.sample_type));
        Options {
            counted: shape.counted,
            children: shape.children,
            order: self.graph.order.unwrap_or(shape.order),
            graph: self.graph(shape),
            lent_graphs: self.lent_graphs,
            max_stack: self.max_stack,
            branch_chains: self.graph.branches,
            hide_unresolved: self.hide_unresolved,
            exclude_other: self.exclude_other,
            ignore_callees: self.ignore_callees.clone(),
            symbol_filter: self.symbol_filter.clone(),
            relative: self.relative,
            time_quantum: self.time_quantum,
            nanoseconds: self.nanoseconds,
            full_paths: self.full_paths,
            places: self.verbose,
            sort_event: self.sort_event,
            weight_parts: parts.collect(),
            ..Options::default()
        }
    }

    /// What is counted, and which callchains there are for it.
    fn shape(&self, recording: Described<'_>) -> Result<Shape, CliError> {
        let events = recording.events;
        let has_callchain = |event: &EventDesc| {
            let sample_type = event.attr.sample_type;
            sample_type.contains(SampleType::CALLCHAIN)
        };
        let has_callchains = events.iter().any(has_callchain);
        let lacks_callchains = !has_callchains && !recording.is_pipe;
        let history = self.graph.history && events.iter().any(has_branches);
        if self.graph.demanded && lacks_callchains && !history {
            return Err(match self.graph.history {
                true => no_branches("--branch-history"),
                false => no_callchains("-g was given"),
            });
        }
        let counted = match self.graph.history {
            true => Counted::Samples,
            false => self.mode.counted(recording)?,
        };
        let callchains = has_callchains && counted != Counted::Branches;
        // perf decides on this before the events of a pipe have come, and leaves callers out then.
        let wants_children = self.children.unwrap_or(!recording.is_pipe) && callchains;
        let by_default = recording.is_pipe || history;
        let caller_first = wants_children || (by_default && self.children.is_none());
        Ok(Shape {
            counted,
            lacks_callchains,
            chains: callchains || history,
            history,
            children: wants_children && !self.layout.hierarchy && counted != Counted::Accesses,
            order: match caller_first {
                true => Direction::Caller,
                false => Direction::Callee,
            },
        })
    }

    fn graph(&self, shape: &Shape) -> Option<GraphOptions> {
        (self.graph.shown && shape.chains).then_some(GraphOptions {
            form: self.graph.form,
            min_percent: self.graph.min_percent,
            by_address: self.graph.by_address,
            by_line: self.graph.by_line,
            tells_branches: shape.history,
        })
    }

    /// The numbers at the start of a row, the first of which orders rows.
    fn shares(&self, children: bool, shows_latency: bool) -> Vec<Number> {
        let (overhead, latency) = match children {
            true => (
                [Number::Total, Number::Own].as_slice(),
                [Number::TotalLatency, Number::Latency].as_slice(),
            ),
            false => ([Number::Own].as_slice(), [Number::Latency].as_slice()),
        };
        let pairs = overhead.iter().zip(latency);
        let pair = |(overhead, latency): (&Number, &Number)| match self.latency_first {
            true => [*latency, *overhead],
            false => [*overhead, *latency],
        };
        let numbers = pairs.flat_map(pair);
        let is_shown =
            |number: &Number| self.latency_first || shows_latency || !number.is_latency();
        numbers.filter(is_shown).collect()
    }

    /// What is looked for in callchains, where `order_by` or a filter asks for it.
    fn parent(
        &self,
        order_by: &[Field],
        lacks_callchains: bool,
    ) -> Result<Option<Regex>, CliError> {
        let mut keys = order_by.iter().filter_map(|field| field.key());
        match keys.any(Key::shows_parent) {
            true if lacks_callchains => return Err(no_callchains("--sort parent was given")),
            false if !self.exclude_other => return Ok(None),
            _ => {}
        }
        match &self.parent {
            Some(parent) => Ok(Some(parent.clone())),
            None => compile("parent", PARENT).map(Some),
        }
    }

    /// Whether symbols are shown with their addresses, and objects with their paths.
    pub(super) fn shows_places(&self) -> bool {
        self.verbose
    }

    /// Shows them so, or not.
    pub(super) fn show_places(&mut self, on: bool) {
        self.verbose = on;
    }

    /// Advice for the reader of this report.
    pub(super) fn tip(&self) -> &'static str {
        if self.children != Some(false) && self.graph.shown {
            "--no-children shows what functions cost by themselves, with their callers below"
        } else if !self.columns.is_overview() {
            "one key gives the overview: -s dso by library, -s comm by program"
        } else {
            "-s comm,dso,symbol tells functions apart"
        }
    }
}

/// What is done with one recording.
pub(super) struct Plan {
    pub(super) options: Options,
    pub(super) layout: Layout,
    /// The sort keys, where costs of memory accesses are counted.
    pub(super) costs_by: Option<String>,
    /// Whether stretches of code between branches are shown instead of rows.
    pub(super) shows_blocks: bool,
    /// Columns that are left out because they have one value, and that value.
    pub(super) values: Vec<(&'static str, String)>,
}

/// Whether a field depends on how many threads ran.
fn is_of_latency(field: &Field) -> bool {
    match field {
        Field::Number(number) => number.is_latency(),
        Field::Key(key) => key.shows_parallelism(),
    }
}

/// What latencies and `--parallelism` lack.
pub(super) fn no_latency() -> CliError {
    let message = "Use of latency profile or parallelism requires --latency flag during record.";
    CliError::message(255, message).hint("context switches are recorded with 'record --latency'")
}

/// Whether samples of an event come with branches.
pub(super) fn has_branches(event: &EventDesc) -> bool {
    let sample_type = event.attr.sample_type;
    sample_type.contains(SampleType::BRANCH_STACK)
}

fn no_branches(option: &str) -> CliError {
    let message = format!("{option} was given, but the samples have no branches");
    CliError::message(255, message).hint("branches are recorded with 'record -b'")
}

/// The regular expression of an option.
pub(in crate::cli::commands) fn regex(
    matches: &ArgMatches,
    option: &str,
) -> Result<Option<Regex>, CliError> {
    let text = matches.get_one::<String>(option);
    text.map(|text| compile(option, text)).transpose()
}

fn compile(option: &str, text: &str) -> Result<Regex, CliError> {
    let compiled = Regex::new(text);
    compiled.map_err(|error| {
        // Several lines, in which the text is indented.
        let shown = error.to_string();
        let (first, rest) = shown.split_once('\n').unwrap_or((&shown, ""));
        CliError::usage(format!("--{option} {text}: {first}")).details(rest)
    })
}

/// Levels are made of the sort keys alone.
fn hierarchy(matches: &ArgMatches) -> Result<bool, CliError> {
    let wanted = flag(matches, "hierarchy") == Some(true);
    if wanted && matches.contains_id("fields") {
        let message = "--hierarchy and --fields options cannot be used together";
        return Err(CliError::usage(message).hint("-s names the levels"));
    }
    Ok(wanted)
}

fn sort_event(matches: &ArgMatches) -> usize {
    let number = matches.get_one::<u64>("group-sort-idx");
    number.map_or(0, |number| usize::try_from(*number).unwrap_or(usize::MAX))
}

pub(in crate::cli::commands) fn widths(list: &str) -> Result<Vec<usize>, CliError> {
    let words = list.split(',').map(str::trim);
    let widths = words.map(|word| match word {
        "" => Ok(0),
        word => word
            .parse()
            .map_err(|_| CliError::usage(format!("-w {list}: '{word}' is no width of a column"))),
    });
    widths.collect()
}

/// A tab can be given as `\t`.
fn separator(text: &str) -> String {
    match text {
        "\\t" => "\t".to_owned(),
        text => text.to_owned(),
    }
}

pub(in crate::cli::commands) fn is_relative(word: &str) -> Result<bool, CliError> {
    match word {
        "relative" => Ok(true),
        "absolute" => Ok(false),
        _ => Err(CliError::usage(format!(
            "--percentage takes relative or absolute, not '{word}'"
        ))),
    }
}
