//! `-g` of report, `-G` and the configuration `call-graph.*`: how call graphs are shown.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_hist::{Direction, GraphForm};
use rperf_view::report::BranchValue;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Branches below this share of all events are left out, in percent.
const THRESHOLD: f64 = 0.5;

/// How call graphs are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallGraph {
    /// `-g none` clears it.
    pub(super) shown: bool,
    /// Asked for by an option: a file without callchains is an error then.
    pub(super) demanded: bool,
    pub(super) form: GraphForm,
    pub(super) value: BranchValue,
    /// Whether calls from different places of one function are different branches.
    pub(super) by_address: bool,
    /// Whether calls from different lines are.
    pub(super) by_line: bool,
    /// Whether chains begin with branches.
    pub(super) branches: bool,
    /// Whether these are told of: `--branch-history`.
    pub(super) history: bool,
    pub(super) min_percent: f64,
    /// Most branches of one fork.
    pub(super) limit: Option<NonZeroUsize>,
    /// Which end of the chains comes first, if that was said.
    pub(super) order: Option<Direction>,
}

impl Default for CallGraph {
    fn default() -> Self {
        Self {
            shown: true,
            demanded: false,
            form: GraphForm::default(),
            value: BranchValue::default(),
            by_address: false,
            by_line: false,
            branches: false,
            history: false,
            min_percent: THRESHOLD,
            limit: None,
            order: None,
        }
    }
}

impl CallGraph {
    /// Configuration first, then the options over it.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let mut graph = Self::default();
        graph.configure(context)?;
        // The later of two thresholds counts.
        let place = |id| matches.index_of(id);
        let limit = limit_option(matches)?;
        if place("percent-limit") < place("call-graph") {
            graph.min_percent = limit.unwrap_or(graph.min_percent);
        }
        if let Some(words) = matches.get_one::<String>("call-graph") {
            graph.apply(words)?;
            graph.demanded = graph.shown;
        }
        if place("percent-limit") > place("call-graph") {
            graph.min_percent = limit.unwrap_or(graph.min_percent);
        }
        if flag(matches, "branch-history") == Some(true) {
            graph.branches = true;
            graph.history = true;
            graph.shown = true;
            graph.demanded = true;
            (graph.by_address, graph.by_line) = (true, false);
        }
        if flag(matches, "inverted") == Some(true) {
            graph.order = Some(Direction::Caller);
        }
        Ok(graph)
    }

    fn configure(&mut self, context: &Context) -> Result<(), CliError> {
        let text = |name| context.config.text(name);
        if let Some(percent) = text("report.percent-limit").and_then(percent) {
            self.min_percent = percent;
        }
        if let Some(percent) = text("call-graph.threshold").and_then(percent) {
            self.min_percent = percent;
        }
        if let Some(limit) = text("call-graph.print-limit").and_then(|text| text.parse().ok()) {
            self.limit = limited(limit);
        }
        for name in [
            "call-graph.print-type",
            "call-graph.order",
            "call-graph.sort-key",
        ] {
            if let Some(word) = text(name) {
                self.word(word)
                    .map_err(|error| error.detail(format!("(from the setting {name})")))?;
            }
        }
        Ok(())
    }

    /// Takes a list of words in any order: numbers are the threshold and then the limit.
    fn apply(&mut self, words: &str) -> Result<(), CliError> {
        let mut numbers = 0;
        for word in words
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            if !word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                self.word(word)?;
                continue;
            }
            match numbers {
                0 => self.min_percent = percent(word).ok_or_else(|| unknown(word))?,
                1 => self.limit = limited(word.parse().map_err(|_| unknown(word))?),
                _ => return Err(unknown(word)),
            }
            numbers += 1;
        }
        Ok(())
    }

    /// Any beginning of a word will do; the first of several is meant, as in perf.
    fn word(&mut self, word: &str) -> Result<(), CliError> {
        let begins = |(name, _): &&(&str, Word)| name.starts_with(word);
        let (_, word) = WORDS.iter().find(begins).ok_or_else(|| unknown(word))?;
        match *word {
            Word::None => self.shown = false,
            Word::Form(form) => {
                self.form = form;
                self.shown = true;
            }
            Word::Order(order) => self.order = Some(order),
            Word::By(key) => {
                self.by_address = key == CallKey::Address;
                self.by_line = key == CallKey::Line;
            }
            Word::Value(value) => self.value = value,
            Word::Branches => self.branches = true,
        }
        Ok(())
    }
}

/// The share below which rows are left out, in percent.
pub(super) fn least_row(matches: &ArgMatches, context: &Context) -> Result<Option<f64>, CliError> {
    let configured = || {
        context
            .config
            .text("report.percent-limit")
            .and_then(percent)
    };
    Ok(limit_option(matches)?.or_else(configured))
}

/// Of `--percent-limit`.
pub(in crate::cli::commands) fn limit_option(
    matches: &ArgMatches,
) -> Result<Option<f64>, CliError> {
    let Some(text) = matches.get_one::<String>("percent-limit") else {
        return Ok(None);
    };
    let limit = percent(text).ok_or_else(|| {
        CliError::usage(format!(
            "--percent-limit {text}: that is no share in percent"
        ))
    })?;
    Ok(Some(limit))
}

/// What makes two calls one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    Function,
    Address,
    Line,
}

/// What a word of `-g` changes.
#[derive(Debug, Clone, Copy)]
enum Word {
    None,
    Form(GraphForm),
    Order(Direction),
    By(CallKey),
    Value(BranchValue),
    Branches,
}

const WORDS: &[(&str, Word)] = &[
    ("none", Word::None),
    ("graph", Word::Form(GraphForm::Graph)),
    ("flat", Word::Form(GraphForm::Flat)),
    ("fractal", Word::Form(GraphForm::Fractal)),
    ("folded", Word::Form(GraphForm::Folded)),
    ("caller", Word::Order(Direction::Caller)),
    ("callee", Word::Order(Direction::Callee)),
    ("function", Word::By(CallKey::Function)),
    ("address", Word::By(CallKey::Address)),
    ("srcline", Word::By(CallKey::Line)),
    ("branch", Word::Branches),
    ("percent", Word::Value(BranchValue::Percent)),
    ("period", Word::Value(BranchValue::Period)),
    ("count", Word::Value(BranchValue::Count)),
];

fn unknown(word: &str) -> CliError {
    CliError::usage(format!("unknown call graph option '{word}'")).hint(
        "give graph, fractal, flat, folded or none, a threshold in percent and a limit, caller or callee, function, \
         address or srcline, branch, percent, period or count, separated by commas",
    )
}

fn percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// 0 means no limit.
fn limited(limit: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CallGraph, String> {
        let mut graph = CallGraph::default();
        graph
            .apply(words)
            .map(|()| graph)
            .map_err(|error| error.text())
    }

    #[test]
    fn parts_come_in_any_order() {
        let expected = CallGraph {
            min_percent: 2.5,
            limit: NonZeroUsize::new(10),
            order: Some(Direction::Callee),
            ..CallGraph::default()
        };
        assert_eq!(parse("callee,2.5,graph,10,function"), Ok(expected));
        assert_eq!(parse("2.5%,10,callee"), Ok(expected));
        assert_eq!(parse("graph"), Ok(CallGraph::default()));
        assert!(parse("none").is_ok_and(|graph| !graph.shown));
        assert!(parse("caller").is_ok_and(|graph| graph.order == Some(Direction::Caller)));
    }

    #[test]
    fn beginnings_of_words_are_enough() {
        let graph = parse("fo,a,pe,callee,co").expect("all are known");
        assert_eq!(graph.form, GraphForm::Folded);
        assert_eq!(graph.order, Some(Direction::Callee));
        assert_eq!(graph.value, BranchValue::Count);
        assert!(graph.by_address && !graph.by_line);
        let by_line = parse("address,srcline").expect("both are known");
        assert!(by_line.by_line && !by_line.by_address);
        assert!(parse("f").is_ok_and(|graph| graph.form == GraphForm::Flat));
        assert!(parse("b").is_ok_and(|graph| graph.branches && !graph.history));
        assert!(parse("p").is_ok_and(|graph| graph.value == BranchValue::Percent));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(parse("upwards").is_err_and(|text| text.contains("'upwards'")));
        assert!(parse("0.5,3,7").is_err_and(|text| text.contains("'7'")));
        assert!(parse("101").is_err());
    }
}
