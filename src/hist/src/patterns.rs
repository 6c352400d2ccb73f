//! Matching of functions in callchains.

use regex::Regex;
use rperf_resolve::{Resolver, SymbolId};
use rustc_hash::FxHashMap;

use crate::keys::CodeSite;
use crate::options::{Direction, HistogramOptions};
use crate::stacks::Interner;

/// The patterns of a report.
pub(crate) struct ReportPatterns<'w, 'a> {
    resolver: &'a Resolver<'w>,
    /// The functions for the key `parent` (`--parent`).
    parent: Option<Pattern>,
    /// The functions whose callees are removed (`--ignore-callees`). The outermost one in a callchain is its root.
    root: Option<Pattern>,
    direction: Direction,
}

/// Matches in a callchain.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternMatches {
    /// The function shown by the key `parent`: the first match in call graph order, which depends on the direction.
    pub(crate) parent: Option<SymbolId>,
    /// Index of the site to which the samples of its callees are attributed (`--ignore-callees`).
    pub(crate) root: Option<u32>,
}

/// A regular expression with cached results. As in perf, inlined functions do not match.
struct Pattern {
    regex: Regex,
    results: FxHashMap<SymbolId, bool>,
}

impl Pattern {
    fn new(regex: &Regex) -> Self {
        Self {
            regex: regex.clone(),
            results: FxHashMap::default(),
        }
    }

    fn is_match(&mut self, resolver: &Resolver<'_>, symbol: SymbolId) -> bool {
        let regex = &self.regex;
        let fits = || !resolver.is_inlined(symbol) && regex.is_match(resolver.symbol_name(symbol));
        *self.results.entry(symbol).or_insert_with(fits)
    }
}

impl<'w, 'a> ReportPatterns<'w, 'a> {
    /// Creates the patterns of a report.
    pub(crate) fn new(options: &HistogramOptions, resolver: &'a Resolver<'w>) -> Self {
        Self {
            resolver,
            parent: options.parent.as_ref().map(Pattern::new),
            root: options.ignore_callees.as_ref().map(Pattern::new),
            direction: options.direction,
        }
    }

    /// Searches `frames`, which are indices in `sites`, and removes the callees of the root. The frames are in call graph order:
    /// the sampled function is first for [`Direction::Callee`], and last for [`Direction::Caller`].
    pub(crate) fn apply(
        &mut self,
        frames: &mut Vec<u32>,
        sites: &Interner<CodeSite>,
    ) -> PatternMatches {
        let mut matched = PatternMatches::default();
        let symbol = |site: u32| sites.get(site)?.symbol;
        if let Some(pattern) = &mut self.parent {
            let mut symbols = frames.iter().filter_map(|site| symbol(*site));
            matched.parent = symbols.find(|symbol| pattern.is_match(self.resolver, *symbol));
        }
        let Some(pattern) = &mut self.root else {
            return matched;
        };
        let mut is_root = |site: &u32| {
            symbol(*site).is_some_and(|symbol| pattern.is_match(self.resolver, symbol))
        };
        let is_inlined = |site: &u32| symbol(*site).is_some_and(|id| self.resolver.is_inlined(id));
        // The root is the outermost match. It is kept with its callers and the functions inlined in it.
        match self.direction {
            Direction::Callee => {
                let Some(index) = frames.iter().rposition(is_root) else {
                    return matched;
                };
                matched.root = frames.get(index).copied();
                let inlined = frames[..index]
                    .iter()
                    .rev()
                    .take_while(|site| is_inlined(site));
                let callees = index - inlined.count();
                frames.drain(..callees);
            }
            Direction::Caller => {
                let Some(index) = frames.iter().position(&mut is_root) else {
                    return matched;
                };
                matched.root = frames.get(index).copied();
                let inlined = frames[index + 1..]
                    .iter()
                    .take_while(|site| is_inlined(site));
                let kept = index + 1 + inlined.count();
                frames.truncate(kept);
            }
        }
        matched
    }
}
