//! What is counted of the samples, and how it is laid out.

use clap::ArgMatches;
use rperf_hist::{
    Direction, Field, GraphForm, GraphOptions, LiveSetup, Number, Options, Select, Source,
};
use rperf_perfdata::{Described, EventDesc, Features};
use rperf_resolve::StackOptions;
use rperf_resolve::{Filter, SymbolNames};
use rperf_view::report::{BranchValue, Layout};
use rperf_wire::Endian;

use crate::cli::color::paints;
use crate::cli::commands::report::{Columns, is_relative, limit_option, regex, widths};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::filter::words;
use crate::cli::options::flag;
use crate::cli::stacks::{source, stack_options, unwinding_limit};
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::own_vdso;

/// The rows where nothing is said.
const KEYS: &str = "dso,symbol";
/// Branches of call graphs below this share of all events are left out, in percent.
const THRESHOLD: f64 = 0.5;
/// Frames of a callchain that count.
const MAX_STACK: usize = 127;

/// What the options ask for.
pub(super) struct Settings {
    options: Options,
    /// How rows are laid out.
    pub(super) layout: Layout,
    symbols: Symbols,
    /// Whether all events share a table.
    group: bool,
}

impl Settings {
    /// Reads options and configuration; `callchains` says whether samples have any.
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
            return Err(CliError::usage(message).hint("-s names the levels"));
        }
        let configured = || context.config.flag("top.children");
        let children = flag(matches, "children").or_else(configured);
        let children = callchains && children != Some(false) && !hierarchy;
        let columns = Columns::or(matches, None);
        let shares: &[Number] = match children {
            true => &[Number::Total, Number::Own],
            false => &[Number::Own],
        };
        let resolved = columns.resolve(KEYS, shares, &mut unknown)?;
        refuse_strange(&resolved.order_by)?;
        let limit = limit_option(matches)?;
        let counted = Counted {
            children,
            callchains,
            min_percent: limit.unwrap_or(THRESHOLD),
        };
        let layout = Layout {
            min_percent: limit.unwrap_or_default(),
            own_is_self: children && !columns.is_exact(),
            widths: text("column-widths").map_or(Ok(Vec::new()), widths)?,
            separator: None,
            graph_form: GraphForm::Graph,
            graph_value: BranchValue::Percent,
            graph_limit: None,
            hierarchy,
            colors: paints(context, "", None)?,
            escapes: context.output.is_terminal(),
            skip_symbol: columns.begins_with_symbol(),
        };
        Ok(Self {
            options: Options {
                columns: resolved.columns,
                order_by: resolved.order_by,
                ..counted.options(matches)?
            },
            layout,
            symbols: Symbols::new(matches, context)?,
            group: on("group"),
        })
    }

    /// How samples of these events are counted.
    pub(super) fn setup(
        &self,
        matches: &ArgMatches,
        context: &Context,
        events: &[EventDesc],
    ) -> LiveSetup {
        let features = Features::none(Endian::NATIVE);
        let described = Described {
            endian: Endian::NATIVE,
            events,
            features: &features,
            is_pipe: false,
        };
        let mut options = self.options.clone();
        let limit = unwinding_limit(described, &mut options);
        let sampled = (0..)
            .zip(events)
            .filter(|(_, event)| !event.attr.is_dummy());
        let sampled: Vec<usize> = sampled.map(|(index, _)| index).collect();
        let groups = match self.group {
            true => vec![sampled],
            false => sampled.into_iter().map(|event| vec![event]).collect(),
        };
        LiveSetup {
            source: Source {
                groups,
                ..source(described, None)
            },
            stacks: StackOptions {
                outermost: options.order == Direction::Caller,
                ..stack_options(described, limit)
            },
            options,
            files: &DiskFiles,
            paths: self.symbols.live_paths(context),
            vdso: own_vdso(),
            select: chosen(matches),
        }
    }
}

/// How the callchains of samples count.
struct Counted {
    /// Whether callers get what their callees have.
    children: bool,
    /// Whether there are any.
    callchains: bool,
    /// Branches of call graphs below this share of all events are left out.
    min_percent: f64,
}

impl Counted {
    /// What is counted, but for the columns.
    fn options(&self, matches: &ArgMatches) -> Result<Options, CliError> {
        let count = |id| matches.get_one::<u64>(id).copied();
        let max_stack = count("max-stack").and_then(|frames| usize::try_from(frames).ok());
        let sort_event = count("group-sort-idx");
        let percentage = matches.get_one::<String>("percentage");
        Ok(Options {
            children: self.children,
            order: match self.children {
                true => Direction::Caller,
                false => Direction::Callee,
            },
            graph: self.callchains.then_some(GraphOptions {
                form: GraphForm::Graph,
                min_percent: self.min_percent,
                by_address: false,
                by_line: false,
                tells_branches: false,
            }),
            max_stack: max_stack.unwrap_or(MAX_STACK),
            ignore_callees: regex(matches, "ignore-callees")?,
            relative: percentage.map_or(Ok(false), |word| is_relative(word))?,
            sort_event: sort_event.map_or(0, |event| usize::try_from(event).unwrap_or(usize::MAX)),
            ..Options::default()
        })
    }
}

/// The samples that `--comms`, `--dsos` and `--symbols` leave.
fn chosen(matches: &ArgMatches) -> Option<Box<dyn Select>> {
    let symbols = words(matches, "symbols");
    let filter = Filter {
        comms: words(matches, "comms"),
        dsos: words(matches, "dsos"),
        symbols: symbols.map(|names| SymbolNames::new(names.iter().map(String::as_str))),
        ..Filter::default()
    };
    let chosen = filter.non_empty()?;
    Some(Box::new(chosen))
}

/// Words that are no keys.
fn unknown(option: &str, word: &str) -> Result<Vec<Field>, CliError> {
    let error = CliError::usage(format!("Unknown --{option} key: `{word}'"));
    Err(error.hint("fields of tracepoints are keys of 'report', of what 'record -e' recorded"))
}

/// Keys of what is not taken here.
fn refuse_strange(order_by: &[Field]) -> Result<(), CliError> {
    let mut keys = order_by.iter().filter_map(|field| field.key());
    let strange = keys.find(|key| {
        let needs_more = key.shows_payload() || key.shows_parent() || key.shows_parallelism();
        key.needs().is_some() || needs_more
    });
    let Some(key) = strange else {
        return Ok(());
    };
    let error = CliError::usage(format!("Invalid --sort key: `{}'", key.name));
    Err(error.hint("'report' sorts by it, what 'record' recorded"))
}
