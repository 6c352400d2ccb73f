//! The settings of `top`: filters, sort keys and the layout of rows.

use clap::ArgMatches;
use rperf_hist::{
    Direction, GraphForm, GraphOptions, HistogramOptions, LiveSetup, NumberField, RecordingInfo,
    ReportField, SelectSamples,
};
use rperf_perfdata::{EventDesc, Features, Metadata};
use rperf_resolve::StackOptions;
use rperf_resolve::{SampleCriteria, SymbolNames};
use rperf_view::report::{GraphValue, ReportLayout};
use rperf_wire::Endian;

use crate::cli::color::color_csi;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::filter::words;
use crate::cli::options::flag;
use crate::cli::shared::columns::ColumnOptions;
use crate::cli::shared::report_options::{is_relative, limit_option, regex, widths};
use crate::cli::stack_folding::{recording_info, stack_options, take_unwinding_limit};
use crate::cli::symbol_options::SymbolSources;
use crate::cli::symbols::own_vdso;
use rperf_input::DiskFiles;

/// The default sort keys.
const DEFAULT_KEYS: &str = "dso,symbol";
/// The default threshold of call graph nodes, in percent of the total period.
const DEFAULT_THRESHOLD: f64 = 0.5;
/// The default maximum number of frames of a callchain.
const DEFAULT_MAX_STACK: usize = 127;

/// The settings according to options and configuration.
pub(super) struct TopSettings {
    options: HistogramOptions,
    /// The layout of rows.
    pub(super) layout: ReportLayout,
    symbols: SymbolSources,
    /// Whether all events share a table.
    group: bool,
}

impl TopSettings {
    /// Reads options and configuration; `callchains` is whether samples have callchains.
    pub(super) fn new(
        matches: &ArgMatches,
        context: &Context,
        callchains: bool,
    ) -> Result<Self, CliError> {
        let on = |id| flag(matches, id) == Some(true);
        let text = |id| matches.get_one::<String>(id).map(String::as_str);
        let hierarchy = on("hierarchy");
        if hierarchy && text("fields").is_some() {
            let message = "--hierarchy and --fields options cannot be used together";
            return Err(CliError::usage(message).hint("choose the levels with -s"));
        }
        let configured = || context.config.flag("top.children");
        let children = flag(matches, "children").or_else(configured);
        let children = callchains && children != Some(false) && !hierarchy;
        // The setting `report.sort_order` does not apply to `top`.
        let configured_sort = None;
        let columns = ColumnOptions::with_default_sort(matches, configured_sort);
        let shares: &[NumberField] = match children {
            true => &[NumberField::Total, NumberField::Own],
            false => &[NumberField::Own],
        };
        let resolved = columns.resolve(DEFAULT_KEYS, shares, &mut unknown_key)?;
        check_sort_keys(&resolved.order_by)?;
        // `--percent-limit` applies to call graph nodes and rows. Without it, all rows are shown; nodes have a default threshold.
        let limit = limit_option(matches)?;
        let counting = ChainCounting {
            children,
            callchains,
            min_percent: limit.unwrap_or(DEFAULT_THRESHOLD),
        };
        let layout = ReportLayout {
            min_percent: limit.unwrap_or_default(),
            titles_own_as_self: children && !columns.replaces_columns(),
            widths: text("column-widths").map_or(Ok(Vec::new()), widths)?,
            separator: None,
            graph_form: GraphForm::Graph,
            graph_value: GraphValue::Percent,
            graph_limit: None,
            hierarchy,
            // `top` has no option for colours, so the option's name and value are empty.
            colors: color_csi(context, "", None)?,
            escapes: context.output.is_terminal(),
            // As in perf, which takes the first frame of a call graph for the row's symbol.
            skips_first_frame: columns.begins_with_symbol(),
            // One thread formats rows.
            threads: None,
        };
        Ok(Self {
            options: HistogramOptions {
                columns: resolved.columns,
                order_by: resolved.order_by,
                ..counting.options(matches, context)?
            },
            layout,
            symbols: SymbolSources::new(matches, context)?,
            group: on("group"),
        })
    }

    /// Returns the setup for counting samples of these events.
    pub(super) fn setup(
        &self,
        matches: &ArgMatches,
        context: &Context,
        events: &[EventDesc],
    ) -> LiveSetup {
        let features = Features::none(Endian::NATIVE);
        let metadata = Metadata {
            endian: Endian::NATIVE,
            events,
            features: &features,
            is_pipe: false,
        };
        let mut options = self.options.clone();
        // If stacks are unwound, takes the limit on frames (`max_stack`) out of `options`: unwinding then applies it.
        let limit = take_unwinding_limit(metadata, &mut options);
        let sampled = (0..)
            .zip(events)
            .filter(|(_, event)| !event.attr.is_dummy());
        let sampled: Vec<usize> = sampled.map(|(index, _)| index).collect();
        let groups = match self.group {
            true => vec![sampled],
            false => sampled.into_iter().map(|event| vec![event]).collect(),
        };
        let no_inline_option = None;
        LiveSetup {
            source: RecordingInfo {
                groups,
                ..recording_info(metadata, no_inline_option)
            },
            stacks: StackOptions {
                // As in perf, a kernel part that is too long loses its innermost frames if graphs begin with callers.
                keeps_outermost: options.direction == Direction::Caller,
                ..stack_options(metadata, limit)
            },
            options,
            files: &DiskFiles,
            paths: self.symbols.live_paths(context),
            vdso: own_vdso(),
            select: sample_filter(matches),
        }
    }
}

/// The settings for counting callchains.
struct ChainCounting {
    /// Whether callers include the counts of their callees.
    children: bool,
    /// Whether samples have callchains.
    callchains: bool,
    /// The threshold of call graph nodes, in percent of the total period.
    min_percent: f64,
}

impl ChainCounting {
    /// Returns the options of the histogram, except for columns and sort keys.
    fn options(
        &self,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<HistogramOptions, CliError> {
        let count = |id| matches.get_one::<u64>(id).copied();
        let max_stack = count("max-stack").and_then(|frames| usize::try_from(frames).ok());
        let sort_event = count("group-sort-idx");
        Ok(HistogramOptions {
            children: self.children,
            direction: match self.children {
                true => Direction::Caller,
                false => Direction::Callee,
            },
            graph: self.callchains.then_some(GraphOptions {
                form: GraphForm::Graph,
                min_percent: self.min_percent,
                by_address: false,
                by_line: false,
                annotates_branches: false,
            }),
            max_stack: max_stack.unwrap_or(DEFAULT_MAX_STACK),
            ignore_callees: regex(matches, "ignore-callees")?,
            relative: is_relative(matches, context)?,
            sort_event: sort_event.map_or(0, |event| usize::try_from(event).unwrap_or(usize::MAX)),
            ..HistogramOptions::default()
        })
    }
}

/// The filter of `--comms`, `--dsos` and `--symbols`; `None` if none of them is given.
fn sample_filter(matches: &ArgMatches) -> Option<Box<dyn SelectSamples>> {
    let symbols = words(matches, "symbols");
    let filter = SampleCriteria {
        comms: words(matches, "comms"),
        dsos: words(matches, "dsos"),
        symbols: symbols.map(|names| SymbolNames::new(names.iter().map(String::as_str))),
        ..SampleCriteria::default()
    };
    Some(Box::new(filter.non_empty()?))
}

/// Refuses a word that is not a built-in sort key or field.
fn unknown_key(option: &str, word: &str) -> Result<Vec<ReportField>, CliError> {
    let error = CliError::usage(format!("Unknown --{option} key: `{word}'"));
    Err(error.hint("sort keys of tracepoint fields are available in 'report'"))
}

/// Refuses sort keys that are only available in `report`.
fn check_sort_keys(order_by: &[ReportField]) -> Result<(), CliError> {
    let mut keys = order_by.iter().filter_map(|field| field.key());
    let unavailable = keys.find(|key| {
        let needs_more = key.shows_payload() || key.shows_parent() || key.shows_parallelism();
        key.required_items().is_some() || needs_more
    });
    let Some(key) = unavailable else {
        return Ok(());
    };
    let error = CliError::usage(format!("Invalid --sort key: `{}'", key.name));
    Err(error.hint("the key is available in 'report'"))
}
