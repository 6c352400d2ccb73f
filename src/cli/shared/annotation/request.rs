//! The options of annotation.

use std::path::PathBuf;

use clap::ArgMatches;
use rperf_disasm::{ListOptions, Listing, ObjdumpListing, SampledFunction};
use rperf_insn::Syntax;
use rperf_resolve::Resolver;
use rperf_view::annotate::{AnnotateColumn, AnnotateLayout, AnnotateOptions};

use super::objdump::run_objdump;
use super::sources::PathPrefix;
use crate::cli::color::color_csi;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::{flag, given_value};
use crate::cli::shared::report_options::limit_option;

/// `--percent-type`: what percentages are relative to, and what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PercentType {
    /// Whether percentages are relative to the event's total instead of the function's.
    pub(crate) global: bool,
    /// Whether samples are counted instead of periods.
    pub(crate) hits: bool,
}

impl PercentType {
    /// Parses `--percent-type`; commands without this option get the default.
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let word = given_value::<String>(matches, "percent-type");
        let word = word.map_or("local-period", String::as_str);
        Self::parse(word).ok_or_else(|| {
            CliError::usage(format!("--percent-type: unknown type '{word}'"))
                .hint("choose from local-period, local-hits, global-period, global-hits")
        })
    }

    fn parse(word: &str) -> Option<Self> {
        let (scope, unit) = word.split_once('-')?;
        Some(Self {
            global: match scope {
                "global" => true,
                "local" => false,
                _ => return None,
            },
            hits: match unit {
                "hits" => true,
                "period" => false,
                _ => return None,
            },
        })
    }

    /// Returns the name used in headings.
    pub(crate) fn text(self) -> String {
        let scope = if self.global { "global" } else { "local" };
        let unit = if self.hits { "hits" } else { "period" };
        format!("{scope} {unit}")
    }
}

/// The parsed options.
pub(crate) struct AnnotationRequest {
    /// The function to show; `None` for all.
    pub(crate) symbol: Option<String>,
    pub(crate) percent_type: PercentType,
    /// `--percent-limit`: a function is shown if it has at least this percentage of the total of any event in its table. A table
    /// shows one event, or the events that `group` puts side by side.
    pub(crate) min_percent: f64,
    pub(crate) syntax: Syntax,
    pub(crate) looks: AnnotateOptions,
    pub(crate) prefix: PathPrefix,
    /// `--group` (the events of a group share a table, or all events if there are no groups) or `--no-group`, if given.
    pub(crate) group: Option<bool>,
    /// Whether events without samples get no column.
    pub(crate) skip_empty: bool,
    /// Whether functions without code are skipped silently.
    pub(crate) skip_missing: bool,
    /// The objdump to use.
    pub(crate) objdump: Option<PathBuf>,
    /// The directory for per-function files.
    pub(crate) directory: Option<PathBuf>,
}

impl AnnotationRequest {
    pub(crate) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
        let is_set = |id| flag(matches, id) == Some(true);
        refuse_contradictions(matches)?;
        let percent_type = PercentType::new(matches)?;
        let directory: Option<PathBuf> = text("output").map(Into::into);
        let may_browse = context.output.is_terminal() && !is_set("stdio");
        let colors = color_csi(context, "stdio-color", text("stdio-color"))?;
        Ok(Self {
            symbol: symbol(matches, context)?,
            percent_type,
            min_percent: limit_option(matches)?.unwrap_or_default(),
            syntax: syntax(matches, context)?,
            looks: AnnotateOptions {
                layout: match is_set("stdio2") {
                    true => AnnotateLayout::Brief,
                    false => AnnotateLayout::Full,
                },
                column: column(matches, context),
                by_samples: percent_type.hits,
                raw: is_set("asm-raw"),
                source: shows_source(matches, context, is_set("stdio2") || may_browse),
                print_line: is_set("print-line"),
                full_paths: is_set("full-paths"),
                // Files have no colours.
                colors: colors.filter(|_| directory.is_none()),
                hottest: hottest(matches)?,
                // A limit for instructions, which only `top` sets. The limit for functions is `min_percent` of the request.
                min_percent: None,
            },
            prefix: PathPrefix::new(matches),
            group: flag(matches, "group"),
            skip_empty: is_set("skip-empty"),
            skip_missing: is_set("skip-missing"),
            objdump: text("objdump").map(Into::into),
            directory,
        })
    }

    /// Returns the defaults: all functions, with their source.
    fn defaults() -> Self {
        Self {
            symbol: None,
            percent_type: PercentType {
                global: false,
                hits: false,
            },
            min_percent: 0.0,
            syntax: Syntax::Att,
            looks: AnnotateOptions {
                source: true,
                ..AnnotateOptions::default()
            },
            prefix: PathPrefix::default(),
            group: None,
            skip_empty: false,
            skip_missing: false,
            objdump: None,
            directory: None,
        }
    }

    /// Parses the options with which `report` and `top` show the code of a function.
    ///
    /// # Errors
    ///
    /// Status 129: unknown values.
    pub(crate) fn of_browser(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let defaults = Self::defaults();
        let objdump = given_value::<String>(matches, "objdump");
        let percent_type = PercentType::new(matches)?;
        let can_hide_source = true;
        Ok(Self {
            percent_type,
            objdump: objdump.map(Into::into),
            syntax: syntax(matches, context)?,
            looks: AnnotateOptions {
                raw: flag(matches, "asm-raw") == Some(true),
                source: shows_source(matches, context, can_hide_source),
                column: column(matches, context),
                by_samples: percent_type.hits,
                ..defaults.looks
            },
            prefix: PathPrefix::new(matches),
            ..defaults
        })
    }

    /// Returns the initial view options, and whether percentages are relative to the event's total instead of the function's.
    pub(crate) fn view_options(&self) -> (AnnotateOptions, bool) {
        (self.looks, self.percent_type.global)
    }

    /// Returns the options of a function's listing; `objdump` is objdump's output for that function, if objdump is used.
    pub(crate) fn list_options<'t>(&self, objdump: Option<&'t ObjdumpListing>) -> ListOptions<'t> {
        ListOptions {
            syntax: self.syntax,
            sources: self.needs_lines(),
            objdump,
        }
    }

    /// Returns objdump's output for a function; `None` if objdump is not used, or the function has no code to list.
    ///
    /// # Errors
    ///
    /// Status 1: objdump cannot be started, or prints no code.
    pub(crate) fn objdump_listing(
        &self,
        resolver: &Resolver<'_>,
        function: &SampledFunction,
    ) -> Result<Option<ObjdumpListing>, CliError> {
        let listing_of = |program| {
            let range = Listing::address_range(resolver, function).ok()?;
            let syntax = self.syntax;
            Some(run_objdump(program, resolver, function, &range, syntax))
        };
        self.objdump.as_deref().and_then(listing_of).transpose()
    }

    /// Whether source lines are needed.
    fn needs_lines(&self) -> bool {
        self.looks.source || self.looks.print_line
    }
}

/// Refuses contradictory options.
fn refuse_contradictions(matches: &ArgMatches) -> Result<(), CliError> {
    let is_set = |id| flag(matches, id) == Some(true);
    if is_set("show-nr-samples") && is_set("show-total-period") {
        return Err(CliError::usage(
            " Error: switch `n' cannot be used with show-total-period",
        ));
    }
    Ok(())
}

/// Returns what the column before the code shows. `-n` takes precedence over periods, and periods over the setting
/// `annotate.show_nr_samples`. `annotate` refuses `-n` with `--show-total-period`; `report` and `top` do not.
fn column(matches: &ArgMatches, context: &Context) -> AnnotateColumn {
    let is_set = |id, setting| {
        let configured = || context.config.flag(setting);
        flag(matches, id).or_else(configured) == Some(true)
    };
    let wants_samples = flag(matches, "show-nr-samples") == Some(true);
    let shows_periods = is_set("show-total-period", "annotate.show_total_period");
    let shows_samples = is_set("show-nr-samples", "annotate.show_nr_samples");
    match (shows_periods && !wants_samples, shows_samples) {
        (true, _) => AnnotateColumn::Period,
        (false, true) => AnnotateColumn::Samples,
        (false, false) => AnnotateColumn::Percent,
    }
}

/// Whether source lines are shown. As in perf, `annotate.hide_src_code` has no effect on the layout of `--stdio`, for which
/// `can_hide` is false.
fn shows_source(matches: &ArgMatches, context: &Context, can_hide: bool) -> bool {
    let configured = || context.config.flag("annotate.hide_src_code");
    let hidden = || can_hide && configured() == Some(true);
    flag(matches, "source").unwrap_or_else(|| !hidden())
}

/// Parses the number of hottest instructions to show.
fn hottest(matches: &ArgMatches) -> Result<Option<usize>, CliError> {
    match matches.get_one::<u64>("hot") {
        None => Ok(None),
        Some(0) => Err(CliError::usage("--hot 0: give at least 1")),
        Some(count) => Ok(Some(usize::try_from(*count).unwrap_or(usize::MAX))),
    }
}

/// Returns the requested function, from `-s` or a positional word.
fn symbol(matches: &ArgMatches, context: &Context) -> Result<Option<String>, CliError> {
    let words: Vec<&String> = matches.get_many("word").unwrap_or_default().collect();
    let named = matches.get_one::<String>("symbol");
    match (named, words.as_slice()) {
        (named, []) => Ok(named.cloned()),
        (None, [word]) => Ok(Some((*word).clone())),
        _ => Err(CliError::usage(format!(
            "{} annotate: more than one function given",
            context.program
        ))),
    }
}

fn syntax(matches: &ArgMatches, context: &Context) -> Result<Syntax, CliError> {
    let given = matches.get_one::<String>("disassembler-style");
    let configured = || context.config.text("annotate.disassembler_style");
    match given.map(String::as_str).or_else(configured) {
        Some("att") | None => Ok(Syntax::Att),
        Some("intel") => Ok(Syntax::Intel),
        Some(word) => Err(CliError::usage(format!("-M {word}: give att or intel"))),
    }
}
