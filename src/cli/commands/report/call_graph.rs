//! `-g` of report, `-G` and the configuration `call-graph.*`: the format of call graphs.

use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_hist::{Direction, GraphForm};
use rperf_view::report::GraphValue;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::report_options::{limit_option, percent};

/// The default threshold of nodes, in percent of the total period (of the parent's in fractal graphs).
const THRESHOLD: f64 = 0.5;

/// The format of call graphs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CallGraphFormat {
    /// Whether call graphs are shown; false after `-g none`.
    pub(super) shown: bool,
    /// Whether an option requests call graphs, so that a recording without callchains is an error.
    pub(super) demanded: bool,
    pub(super) form: GraphForm,
    /// Whether nodes show a percentage, a period or a number of samples.
    pub(super) value: GraphValue,
    /// Whether calls from different addresses in a function are separate nodes.
    pub(super) by_address: bool,
    /// Whether calls from different source lines are separate nodes.
    pub(super) by_line: bool,
    /// Whether branch stacks are prepended to callchains.
    pub(super) branches: bool,
    /// Whether details of branch stacks are shown: `--branch-history`.
    pub(super) history: bool,
    /// The threshold of nodes, in percent of the total period (of the parent's in fractal graphs).
    pub(super) min_percent: f64,
    /// Maximum number of children of a node; `None` for no limit.
    pub(super) max_children: Option<NonZeroUsize>,
    /// Caller- or callee-first order, if given.
    pub(super) order: Option<Direction>,
}

impl Default for CallGraphFormat {
    fn default() -> Self {
        Self {
            shown: true,
            demanded: false,
            form: GraphForm::default(),
            value: GraphValue::default(),
            by_address: false,
            by_line: false,
            branches: false,
            history: false,
            min_percent: THRESHOLD,
            max_children: None,
            order: None,
        }
    }
}

impl CallGraphFormat {
    /// Reads the configuration, then the options, which override the configuration.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let mut graph = Self::default();
        graph.configure(context)?;
        // `--percent-limit` and `-g` can both set the threshold: the later one applies. The place of an option that is not given
        // is `None`, which is before all others.
        let place = |id| matches.index_of(id);
        let percent_limit = limit_option(matches)?;
        if place("percent-limit") < place("call-graph") {
            graph.min_percent = percent_limit.unwrap_or(graph.min_percent);
        }
        if let Some(words) = matches.get_one::<String>("call-graph") {
            graph.apply(words)?;
            graph.demanded = graph.shown;
        }
        if place("percent-limit") > place("call-graph") {
            graph.min_percent = percent_limit.unwrap_or(graph.min_percent);
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

    /// Reads the configuration.
    fn configure(&mut self, context: &Context) -> Result<(), CliError> {
        let text = |name| context.config.text(name);
        if let Some(limit) = text("report.percent-limit").and_then(percent) {
            self.min_percent = limit;
        }
        if let Some(threshold) = text("call-graph.threshold").and_then(percent) {
            self.min_percent = threshold;
        }
        if let Some(number) = text("call-graph.print-limit").and_then(|text| text.parse().ok()) {
            self.max_children = NonZeroUsize::new(number);
        }
        for name in [
            "call-graph.print-type",
            "call-graph.order",
            "call-graph.sort-key",
        ] {
            if let Some(word) = text(name) {
                self.apply_word(word)
                    .map_err(|error| error.detail(format!("(from the setting {name})")))?;
            }
        }
        Ok(())
    }

    /// Applies a list of words in any order: the first number is the threshold, the second the maximum number of
    /// children (0 for no limit).
    fn apply(&mut self, words: &str) -> Result<(), CliError> {
        let mut numbers = 0;
        for word in words
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            if !word.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
                self.apply_word(word)?;
                continue;
            }
            match numbers {
                0 => self.min_percent = percent(word).ok_or_else(|| unknown(word))?,
                1 => {
                    let number = word.parse::<usize>().map_err(|_| unknown(word))?;
                    self.max_children = NonZeroUsize::new(number);
                }
                _ => return Err(unknown(word)),
            }
            numbers += 1;
        }
        Ok(())
    }

    /// Applies a word, which may be abbreviated; the first match in [`WORDS`] is taken, as in perf.
    fn apply_word(&mut self, word: &str) -> Result<(), CliError> {
        let begins = |(name, _): &&(&str, GraphWord)| name.starts_with(word);
        let (_, word) = WORDS.iter().find(begins).ok_or_else(|| unknown(word))?;
        match *word {
            GraphWord::None => self.shown = false,
            GraphWord::Form(form) => {
                self.form = form;
                self.shown = true;
            }
            GraphWord::Order(order) => self.order = Some(order),
            GraphWord::By(key) => {
                self.by_address = key == CallKey::Address;
                self.by_line = key == CallKey::Line;
            }
            GraphWord::Value(value) => self.value = value,
            GraphWord::Branches => self.branches = true,
        }
        Ok(())
    }
}

/// Returns the minimum share of rows that are shown, in percent; `None` if neither an option nor the configuration gives it.
pub(super) fn min_row_percent(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<f64>, CliError> {
    let configured = || {
        context
            .config
            .text("report.percent-limit")
            .and_then(percent)
    };
    Ok(limit_option(matches)?.or_else(configured))
}

/// The key that distinguishes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    Function,
    Address,
    Line,
}

/// The setting that a word of `-g` changes.
#[derive(Debug, Clone, Copy)]
enum GraphWord {
    None,
    Form(GraphForm),
    Order(Direction),
    By(CallKey),
    Value(GraphValue),
    Branches,
}

const WORDS: &[(&str, GraphWord)] = &[
    ("none", GraphWord::None),
    ("graph", GraphWord::Form(GraphForm::Graph)),
    ("flat", GraphWord::Form(GraphForm::Flat)),
    ("fractal", GraphWord::Form(GraphForm::Fractal)),
    ("folded", GraphWord::Form(GraphForm::Folded)),
    ("caller", GraphWord::Order(Direction::Caller)),
    ("callee", GraphWord::Order(Direction::Callee)),
    ("function", GraphWord::By(CallKey::Function)),
    ("address", GraphWord::By(CallKey::Address)),
    ("srcline", GraphWord::By(CallKey::Line)),
    ("branch", GraphWord::Branches),
    ("percent", GraphWord::Value(GraphValue::Percent)),
    ("period", GraphWord::Value(GraphValue::Period)),
    ("count", GraphWord::Value(GraphValue::Count)),
];

fn unknown(word: &str) -> CliError {
    CliError::usage(format!("unknown call graph option '{word}'")).hint(
        "give words, separated by commas: graph, fractal, flat, folded or none; a threshold in percent, then a maximum \
         number of children; caller or callee; function, address or srcline; branch; percent, period or count",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CallGraphFormat, String> {
        let mut graph = CallGraphFormat::default();
        graph
            .apply(words)
            .map(|()| graph)
            .map_err(|error| error.text())
    }

    #[test]
    fn words_come_in_any_order() {
        let expected = CallGraphFormat {
            min_percent: 2.5,
            max_children: NonZeroUsize::new(10),
            order: Some(Direction::Callee),
            ..CallGraphFormat::default()
        };
        assert_eq!(parse("callee,2.5,graph,10,function"), Ok(expected));
        assert_eq!(parse("2.5%,10,callee"), Ok(expected));
        assert_eq!(parse("graph"), Ok(CallGraphFormat::default()));
        assert!(parse("none").is_ok_and(|graph| !graph.shown));
        assert!(parse("caller").is_ok_and(|graph| graph.order == Some(Direction::Caller)));
    }

    #[test]
    fn words_may_be_abbreviated() {
        let graph = parse("fo,a,pe,callee,co").expect("all are known");
        assert_eq!(graph.form, GraphForm::Folded);
        assert_eq!(graph.order, Some(Direction::Callee));
        assert_eq!(graph.value, GraphValue::Count);
        assert!(graph.by_address && !graph.by_line);
        let by_line = parse("address,srcline").expect("both are known");
        assert!(by_line.by_line && !by_line.by_address);
        assert!(parse("f").is_ok_and(|graph| graph.form == GraphForm::Flat));
        assert!(parse("b").is_ok_and(|graph| graph.branches && !graph.history));
        assert!(parse("p").is_ok_and(|graph| graph.value == GraphValue::Percent));
    }

    #[test]
    fn invalid_words_are_refused() {
        assert!(parse("upwards").is_err_and(|text| text.contains("'upwards'")));
        assert!(parse("0.5,3,7").is_err_and(|text| text.contains("'7'")));
        // A threshold is at most 100 percent.
        assert!(parse("101").is_err());
    }
}
