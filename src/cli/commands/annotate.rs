//! `rperf annotate`: the instructions that samples fell on.

mod args;
mod missing;
mod sources;

use std::io::Write as _;
use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_disasm::{Function, Functions, Hit, Hits, Listing};
use rperf_hist::Select;
use rperf_insn::Syntax;
use rperf_replay::Replay;
use rperf_resolve::Resolver;
use rperf_view::annotate::{AnnotateOptions, Annotation, Column, annotation};

use crate::cli::choice::Chosen;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::filter::Wanted;
use crate::cli::findings::{conclude, tell_of_symbols};
use crate::cli::input::Input;
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::progress::Progress;
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::replay;

pub(super) use self::args::command;
use self::missing::Missing;
use self::sources::{Prefix, Sources};

/// Prints the functions.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    let question = Question::new(matches, context)?;
    let wanted = Wanted::new(matches)?;
    let verbose = context.verbosity(matches) > 0;
    let symbols = Symbols::new(matches, context)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let jobs = jobs(matches, context)?;
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, jobs, &progress)?;
    let resolver = symbols.resolver(context, replay.world(), data.features());
    let chosen = Chosen::new(wanted.filter(data.described(), false)?);
    let select = chosen.as_ref().map(|chosen| chosen as &dyn Select);
    let functions = count(&replay, &resolver, select, jobs)?;
    drop(progress);
    let shown = question.chosen(&functions, &resolver, &input);
    let shown = shown.inspect_err(|_| tell_of_symbols(context, &resolver, verbose))?;
    context.paginate("annotate")?;
    question.print(&shown, &functions, (&replay, &resolver), context)?;
    tell_of_symbols(context, &resolver, verbose);
    conclude(&input.path, &replay.diagnostics(), context)?;
    Ok(Exit::Ok)
}

fn count(
    replay: &Replay<'_>,
    resolver: &Resolver<'_>,
    select: Option<&dyn Select>,
    jobs: NonZeroUsize,
) -> Result<Functions, CliError> {
    let hits = replay.fold(jobs, || Hits::new(resolver, select))?;
    Ok(hits.functions())
}

/// What shares are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PercentType {
    /// The event's samples rather than the function's.
    global: bool,
    /// Numbers of samples rather than periods.
    hits: bool,
}

impl PercentType {
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

    fn text(self) -> String {
        let scope = if self.global { "global" } else { "local" };
        let what = if self.hits { "hits" } else { "period" };
        format!("{scope} {what}")
    }
}

/// What the options ask for.
struct Question {
    symbol: Option<String>,
    share: PercentType,
    /// The smallest share of an event that a function is shown for, in percent.
    limit: f64,
    syntax: Syntax,
    looks: AnnotateOptions,
    prefix: Prefix,
}

impl Question {
    fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
        let is_set = |id| flag(matches, id) == Some(true);
        let share = text("percent-type").unwrap_or("local-period");
        let share = PercentType::named(share).ok_or_else(|| {
            CliError::usage(format!("--percent-type: there is no type '{share}'"))
                .hint("types: local-period, local-hits, global-period, global-hits")
        })?;
        Ok(Self {
            symbol: symbol(matches, context)?,
            share,
            limit: text("percent-limit").map_or(Ok(0.0), limit)?,
            syntax: text("disassembler-style").map_or(Ok(Syntax::Att), syntax)?,
            looks: AnnotateOptions {
                column: match (is_set("show-total-period"), is_set("show-nr-samples")) {
                    (true, _) => Column::Period,
                    (false, true) => Column::Samples,
                    (false, false) => Column::Percent,
                },
                by_samples: share.hits,
                raw: is_set("asm-raw"),
                source: flag(matches, "source") != Some(false),
                lines: is_set("print-line"),
                full_paths: is_set("full-paths"),
            },
            prefix: Prefix {
                directory: text("prefix").map(Into::into),
                strip: matches.get_one("prefix-strip").copied().unwrap_or_default(),
            },
        })
    }

    /// The functions to show.
    fn chosen<'f>(
        &self,
        functions: &'f Functions,
        resolver: &Resolver<'_>,
        input: &Input,
    ) -> Result<Vec<&'f Function>, CliError> {
        let name = |function: &Function| resolver.symbol_name(function.symbol);
        let is_named = |function: &&Function| {
            let symbol = self.symbol.as_deref();
            symbol.is_none_or(|symbol| symbol == name(function))
        };
        let found: Vec<&Function> = functions.all().iter().filter(is_named).collect();
        if found.is_empty() {
            let shown = input.path.display();
            let names = functions.all().iter().map(name);
            return Err(match self.symbol.as_deref() {
                Some(symbol) => missing::no_samples_in(symbol, names, &shown),
                None => missing::no_samples(functions, &shown),
            });
        }
        let is_hot = |function: &&Function| {
            let total = functions.total(function.event).period.max(1);
            function.sum.period as f64 * 100.0 / total as f64 >= self.limit
        };
        Ok(found.into_iter().filter(is_hot).collect())
    }

    fn print(
        &self,
        shown: &[&Function],
        functions: &Functions,
        (replay, resolver): (&Replay<'_>, &Resolver<'_>),
        context: &Context,
    ) -> Result<(), CliError> {
        let mut missing = Missing::default();
        let mut sources = Sources::new(&self.prefix);
        let mut out = context.stdout();
        for function in shown {
            let listing = Listing::new(resolver, function, self.syntax, self.needs_lines());
            let listing = match listing {
                Ok(listing) => listing,
                Err(why) => {
                    missing.add(function, why);
                    continue;
                }
            };
            sources.add(&listing);
            let share = self.share.text();
            let events = replay.data().events();
            let event = events.get(function.event.0 as usize);
            let shown = Annotation {
                object: &resolver.world().dso(function.symbol.dso).name,
                name: resolver.symbol_name(function.symbol),
                event: event.map_or("", |event| event.name.as_str()),
                function,
                listing: &listing,
                total: self.total(function, functions),
                share: &share,
                source: &sources,
            };
            annotation(&mut out, &shown, &self.looks)?;
        }
        out.flush()?;
        drop(out);
        missing.tell(resolver, shown.len(), context)
    }

    fn needs_lines(&self) -> bool {
        self.looks.source || self.looks.lines
    }

    fn total(&self, function: &Function, functions: &Functions) -> Hit {
        match self.share.global {
            true => functions.total(function.event),
            false => function.sum,
        }
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

fn limit(word: &str) -> Result<f64, CliError> {
    let percent = word.trim_end_matches('%').parse().ok();
    let percent = percent.filter(|percent: &f64| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| {
        CliError::usage(format!(
            "--percent-limit {word}: that is no share in percent"
        ))
    })
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
