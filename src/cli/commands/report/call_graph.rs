//! `-g` of report, `-G` and the configuration `call-graph.*`: how call graphs are shown.

use clap::ArgMatches;
use rperf_hist::Direction;

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
    pub(super) min_percent: f64,
    /// Most branches of one fork.
    pub(super) limit: Option<usize>,
    /// Which end of the chains comes first, if that was said.
    pub(super) order: Option<Direction>,
}

impl Default for CallGraph {
    fn default() -> Self {
        Self {
            shown: true,
            demanded: false,
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
        if let Some(words) = matches.get_one::<String>("call-graph") {
            graph.apply(words)?;
            graph.demanded = graph.shown;
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

    fn word(&mut self, word: &str) -> Result<(), CliError> {
        let begins = |name: &str| name.starts_with(word);
        if begins("graph") {
            self.shown = true;
        } else if begins("none") {
            self.shown = false;
        } else if begins("caller") {
            self.order = Some(Direction::Caller);
        } else if begins("callee") {
            self.order = Some(Direction::Callee);
        } else if !(begins("function") || begins("percent")) {
            return Err(to_come(word).unwrap_or_else(|| unknown(word)));
        }
        Ok(())
    }
}

fn to_come(word: &str) -> Option<CliError> {
    let forms = [
        "fractal", "flat", "folded", "address", "srcline", "branch", "period", "count",
    ];
    let form = forms.iter().find(|form| form.starts_with(word))?;
    Some(CliError::usage(format!(
        "call graphs in the form '{form}' are not supported yet; there are graph and none"
    )))
}

fn unknown(word: &str) -> CliError {
    CliError::usage(format!("unknown call graph option '{word}'")).hint(
        "give graph or none, a threshold in percent and a limit, caller or callee, separated by commas",
    )
}

fn percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number)
}

/// 0 means no limit.
fn limited(limit: usize) -> Option<usize> {
    (limit > 0).then_some(limit)
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
            limit: Some(10),
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
    fn what_is_not_built_and_what_is_not_known_are_refused() {
        assert!(
            parse("fractal").is_err_and(|text| text.contains("'fractal' are not supported yet"))
        );
        assert!(parse("upwards").is_err_and(|text| text.contains("'upwards'")));
        assert!(parse("0.5,3,7").is_err_and(|text| text.contains("'7'")));
        assert!(parse("101").is_err());
    }
}
