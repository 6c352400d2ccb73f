//! What the options ask for.

use std::path::PathBuf;

use clap::ArgMatches;
use rperf_disasm::{ListOptions, Told};
use rperf_insn::Syntax;
use rperf_view::annotate::{AnnotateOptions, Column, Layout};

use super::sources::Prefix;
use crate::cli::color::paints;
use crate::cli::commands::report::limit_option;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// What shares are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PercentType {
    /// The event's samples rather than the function's.
    pub(super) global: bool,
    /// Numbers of samples rather than periods.
    pub(super) hits: bool,
}

impl PercentType {
    /// `--percent-type`, for commands that have it.
    fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let word = matches.try_get_one::<String>("percent-type").ok().flatten();
        let word = word.map_or("local-period", String::as_str);
        Self::named(word).ok_or_else(|| {
            CliError::usage(format!("--percent-type: there is no type '{word}'"))
                .hint("types: local-period, local-hits, global-period, global-hits")
        })
    }

    fn named(word: &str) -> Option<Self> {
        let (scope, what) = word.split_once('-')?;
        Some(Self {
            global: match scope {
                "global" => true,
                "local" => false,
                _ => return None,
            },
            hits: match what {
                "hits" => true,
                "period" => false,
                _ => return None,
            },
        })
    }

    /// In the words of headings.
    pub(super) fn text(self) -> String {
        let scope = if self.global { "global" } else { "local" };
        let what = if self.hits { "hits" } else { "period" };
        format!("{scope} {what}")
    }
}

/// What the options ask for.
pub(in crate::cli::commands) struct Request {
    /// The function to show; all, if none is named.
    pub(super) symbol: Option<String>,
    pub(super) share: PercentType,
    /// The smallest share of an event that a function is shown for, in percent.
    pub(super) limit: f64,
    pub(super) syntax: Syntax,
    pub(in crate::cli::commands) looks: AnnotateOptions,
    pub(in crate::cli::commands) prefix: Prefix,
    /// Whether the events of a group, or all, stand beside each other, if that was said.
    pub(super) group: Option<bool>,
    /// Whether events without samples have no column.
    pub(super) skip_empty: bool,
    /// Whether nothing is said of functions without code.
    pub(super) skip_missing: bool,
    /// The objdump whose words are wanted.
    pub(super) objdump: Option<PathBuf>,
    /// The directory for a file of each function.
    pub(super) directory: Option<PathBuf>,
}

impl Request {
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
        let is_set = |id| flag(matches, id) == Some(true);
        refuse(matches)?;
        let share = PercentType::new(matches)?;
        let directory: Option<PathBuf> = text("output").map(Into::into);
        let colors = paints(context, "stdio-color", text("stdio-color"))?;
        Ok(Self {
            symbol: symbol(matches, context)?,
            share,
            limit: limit_option(matches)?.unwrap_or_default(),
            syntax: text("disassembler-style").map_or(Ok(Syntax::Att), syntax)?,
            looks: AnnotateOptions {
                layout: match is_set("stdio2") {
                    true => Layout::Brief,
                    false => Layout::Full,
                },
                column: column(matches),
                by_samples: share.hits,
                raw: is_set("asm-raw"),
                source: flag(matches, "source") != Some(false),
                lines: is_set("print-line"),
                full_paths: is_set("full-paths"),
                colors: colors.filter(|_| directory.is_none()),
                hottest: hottest(matches)?,
                least: None,
            },
            prefix: Prefix::new(matches),
            group: flag(matches, "group"),
            skip_empty: is_set("skip-empty"),
            skip_missing: is_set("skip-missing"),
            objdump: text("objdump").map(Into::into),
            directory,
        })
    }

    /// What is asked for where nothing is said: all functions, with their source.
    fn usual() -> Self {
        Self {
            symbol: None,
            share: PercentType {
                global: false,
                hits: false,
            },
            limit: 0.0,
            syntax: Syntax::Att,
            looks: AnnotateOptions {
                source: true,
                ..AnnotateOptions::default()
            },
            prefix: Prefix::default(),
            group: None,
            skip_empty: false,
            skip_missing: false,
            objdump: None,
            directory: None,
        }
    }

    /// The same with the options that `report` and `top` have for code.
    ///
    /// # Errors
    ///
    /// Status 129: words that are not known.
    pub(in crate::cli::commands) fn of_browser(matches: &ArgMatches) -> Result<Self, CliError> {
        let usual = Self::usual();
        let style = matches.get_one::<String>("disassembler-style");
        let objdump = matches.try_get_one::<String>("objdump").ok().flatten();
        let share = PercentType::new(matches)?;
        Ok(Self {
            share,
            objdump: objdump.map(Into::into),
            syntax: style.map_or(Ok(Syntax::Att), |word| syntax(word))?,
            looks: AnnotateOptions {
                raw: flag(matches, "asm-raw") == Some(true),
                source: flag(matches, "source") != Some(false),
                by_samples: share.hits,
                ..usual.looks
            },
            prefix: Prefix::new(matches),
            ..usual
        })
    }

    /// How code looks first, and whether shares of it are of all functions.
    pub(in crate::cli::commands) fn looks(&self) -> (AnnotateOptions, bool) {
        (self.looks, self.share.global)
    }

    /// How code is listed; `told` is what an objdump printed of it.
    pub(in crate::cli::commands) fn listing<'t>(&self, told: Option<&'t Told>) -> ListOptions<'t> {
        ListOptions {
            syntax: self.syntax,
            sources: self.needs_lines(),
            told,
        }
    }

    /// Whether places in the source are to be found.
    fn needs_lines(&self) -> bool {
        self.looks.source || self.looks.lines
    }
}

/// Refuses what contradicts itself.
fn refuse(matches: &ArgMatches) -> Result<(), CliError> {
    let is_set = |id| flag(matches, id) == Some(true);
    if is_set("show-nr-samples") && is_set("show-total-period") {
        return Err(CliError::usage(
            " Error: switch `n' cannot be used with show-total-period",
        ));
    }
    Ok(())
}

fn column(matches: &ArgMatches) -> Column {
    let is_set = |id| flag(matches, id) == Some(true);
    match (is_set("show-total-period"), is_set("show-nr-samples")) {
        (true, _) => Column::Period,
        (false, true) => Column::Samples,
        (false, false) => Column::Percent,
    }
}

/// How many of the hottest instructions are wanted.
fn hottest(matches: &ArgMatches) -> Result<Option<usize>, CliError> {
    match matches.get_one::<u64>("hot") {
        None => Ok(None),
        Some(0) => Err(CliError::usage("--hot 0: at least one instruction")),
        Some(count) => Ok(Some(usize::try_from(*count).unwrap_or(usize::MAX))),
    }
}

/// The function that is asked for, by `-s` or a word.
fn symbol(matches: &ArgMatches, context: &Context) -> Result<Option<String>, CliError> {
    let words: Vec<&String> = matches.get_many("word").unwrap_or_default().collect();
    let named = matches.get_one::<String>("symbol");
    match (named, words.as_slice()) {
        (named, []) => Ok(named.cloned()),
        (None, [word]) => Ok(Some((*word).clone())),
        _ => Err(CliError::usage(format!(
            "{} annotate: one function can be named, or none for all",
            context.program
        ))),
    }
}

fn syntax(word: &str) -> Result<Syntax, CliError> {
    match word {
        "att" => Ok(Syntax::Att),
        "intel" => Ok(Syntax::Intel),
        _ => Err(CliError::usage(format!(
            "-M {word}: operands are written as att or intel"
        ))),
    }
}
