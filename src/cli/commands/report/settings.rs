//! What the command line and the configuration ask of a report.

use clap::ArgMatches;
use rperf_hist::{Direction, Error, GraphOptions, KEYS, Key, Options, parse_keys};
use rperf_perfdata::{Described, EventDesc};
use rperf_view::report::Layout;
use rperf_wire::{EventType, SampleType};

use super::call_graph::CallGraph;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use rperf_events::by_distance;

/// The rows of a report where nothing else is said.
const DEFAULT_SORT: &str = "comm,dso,symbol";

/// The same in a recording of tracepoints alone.
const TRACEPOINT_SORT: &str = "trace";

/// Frames of a callchain that count, as many as kernels record by default.
const MAX_STACK: usize = 127;

/// The settings of one run.
pub(super) struct Settings {
    /// Empty where the kinds of events decide.
    keys: Vec<&'static Key>,
    /// `None` where nothing is said.
    children: Option<bool>,
    graph: CallGraph,
    /// How the text is laid out.
    pub(super) layout: Layout,
    /// `-q`: rows alone.
    pub(super) quiet: bool,
}

impl Settings {
    /// Reads options and configuration.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let sort = matches.get_one::<String>("sort").map(String::as_str);
        let sort = sort.or_else(|| context.config.text("report.sort_order"));
        let keys = parse_keys(sort.unwrap_or_default()).map_err(unknown_key)?;
        let graph = CallGraph::new(matches, context)?;
        let quiet = flag(matches, "quiet") == Some(true);
        context.output.set_quiet(quiet);
        let limit = context.config.text("report.percent-limit");
        let limit = limit.and_then(|text| text.trim_end_matches('%').parse().ok());
        let children = flag(matches, "children").or_else(|| context.config.flag("report.children"));
        Ok(Self {
            layout: Layout {
                samples: flag(matches, "show-nr-samples") == Some(true),
                min_percent: limit.unwrap_or_default(),
                graph_form: graph.form,
                graph_value: graph.value,
                graph_limit: graph.limit,
                separator: None,
                skip_symbol: sort.is_some() && keys.first().is_some_and(|key| key.name == "symbol"),
            },
            keys,
            children,
            graph,
            quiet,
        })
    }

    /// What is to be counted in a recording with or without callchains.
    pub(super) fn options(&self, recording: Described<'_>) -> Result<Options, CliError> {
        let events = recording.events;
        let has_callchain = |event: &EventDesc| {
            let sample_type = event.attr.sample_type;
            sample_type.contains(SampleType::CALLCHAIN)
        };
        let callchains = events.iter().any(has_callchain);
        if self.graph.demanded && !callchains && !recording.is_pipe {
            let error = CliError::message(255, "-g was given, but the samples have no callchains");
            return Err(error.hint("callchains are recorded with 'record -g'"));
        }
        // perf decides on this before the events of a pipe have come, and leaves callers out then.
        let children = self.children.unwrap_or(!recording.is_pipe) && callchains;
        let caller_first = children || (recording.is_pipe && self.children.is_none());
        let order = if caller_first {
            Direction::Caller
        } else {
            Direction::Callee
        };
        Ok(Options {
            keys: self.keys(recording)?,
            children,
            order: self.graph.order.unwrap_or(order),
            graph: (self.graph.shown && callchains).then_some(GraphOptions {
                form: self.graph.form,
                min_percent: self.graph.min_percent,
                by_address: self.graph.by_address,
            }),
            by_samples: self.layout.samples,
            max_stack: MAX_STACK,
        })
    }

    /// Tracepoints alone tell more by what they say than by where they are. In a pipe more events may follow.
    fn keys(&self, recording: Described<'_>) -> Result<Vec<&'static Key>, CliError> {
        if !self.keys.is_empty() {
            return Ok(self.keys.clone());
        }
        let is_tracepoint = |event: &EventDesc| event.attr.kind == EventType::TRACEPOINT;
        let tracepoints = recording.events.iter().all(is_tracepoint);
        let sort = if tracepoints && !recording.is_pipe {
            TRACEPOINT_SORT
        } else {
            DEFAULT_SORT
        };
        parse_keys(sort).map_err(unknown_key)
    }

    /// Advice for the reader of this report.
    pub(super) fn tip(&self) -> &'static str {
        if self.children != Some(false) && self.graph.shown {
            "--no-children shows what functions cost by themselves, with their callers below"
        } else if self.keys.len() != 1 {
            "one key gives the overview: -s dso by library, -s comm by program"
        } else {
            "-s comm,dso,symbol tells functions apart"
        }
    }
}

/// perf's words, with the keys there are: those first that the word may have meant.
fn unknown_key(error: Error) -> CliError {
    let cli = CliError::usage(error.to_string());
    let Error::UnknownKey(word) = &error else {
        return cli;
    };
    let names = by_distance(word, KEYS.iter().map(|key| key.name));
    cli.hint(format!("the keys are {}", names.join(", ")))
}
