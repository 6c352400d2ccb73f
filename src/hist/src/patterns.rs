//! Functions of callchains that are looked for by their names.

use regex::Regex;
use rperf_resolve::{Resolver, SymbolId};
use rustc_hash::FxHashMap;

use crate::keys::Site;
use crate::options::{Direction, Options};
use crate::stacks::Interner;

/// What is looked for in callchains.
pub(crate) struct Patterns<'w, 'a> {
    resolver: &'a Resolver<'w>,
    parent: Option<Pattern>,
    root: Option<Pattern>,
    order: Direction,
}

/// What was found in a callchain.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The function that stands for the callers.
    pub(crate) parent: Option<SymbolId>,
    /// The site that a sample falls on instead of its own.
    pub(crate) root: Option<u32>,
}

/// A regular expression, and what it was tried on.
struct Pattern {
    regex: Regex,
    known: FxHashMap<SymbolId, bool>,
}

impl Pattern {
    fn new(regex: &Regex) -> Self {
        Self {
            regex: regex.clone(),
            known: FxHashMap::default(),
        }
    }

    fn is_match(&mut self, resolver: &Resolver<'_>, symbol: SymbolId) -> bool {
        let regex = &self.regex;
        let fits = || !resolver.is_inlined(symbol) && regex.is_match(resolver.symbol_name(symbol));
        *self.known.entry(symbol).or_insert_with(fits)
    }
}

impl<'w, 'a> Patterns<'w, 'a> {
    /// Those of a report.
    pub(crate) fn new(options: &Options, resolver: &'a Resolver<'w>) -> Self {
        Self {
            resolver,
            parent: options.parent.as_ref().map(Pattern::new),
            root: options.ignore_callees.as_ref().map(Pattern::new),
            order: options.order,
        }
    }

    /// Looks through `frames`, numbers of `sites` in the order of call graphs, and takes off the callees of the root.
    pub(crate) fn find(&mut self, frames: &mut Vec<u32>, sites: &Interner<Site>) -> Found {
        let mut found = Found::default();
        let symbol = |number: u32| sites.get(number)?.symbol;
        if let Some(pattern) = &mut self.parent {
            let mut symbols = frames.iter().filter_map(|site| symbol(*site));
            found.parent = symbols.find(|symbol| pattern.is_match(self.resolver, *symbol));
        }
        let Some(pattern) = &mut self.root else {
            return found;
        };
        let mut is_root = |site: &u32| {
            symbol(*site).is_some_and(|symbol| pattern.is_match(self.resolver, symbol))
        };
        // The outermost of them, with what is inlined there.
        let is_inlined = |site: &u32| symbol(*site).is_some_and(|id| self.resolver.is_inlined(id));
        match self.order {
            Direction::Callee => {
                let Some(place) = frames.iter().rposition(is_root) else {
                    return found;
                };
                found.root = frames.get(place).copied();
                let inlined = frames[..place]
                    .iter()
                    .rev()
                    .take_while(|site| is_inlined(site));
                let callees = place - inlined.count();
                frames.drain(..callees);
            }
            Direction::Caller => {
                let Some(place) = frames.iter().position(&mut is_root) else {
                    return found;
                };
                found.root = frames.get(place).copied();
                let inlined = frames[place + 1..]
                    .iter()
                    .take_while(|site| is_inlined(site));
                let callers = place + 1 + inlined.count();
                frames.truncate(callers);
            }
        }
        found
    }
}
