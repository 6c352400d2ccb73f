//! Symbols at one address, of which perf keeps one. The kept symbol is determined only when it is needed: the comparison may
//! require demangled names, and a library with folded functions has several symbols at each of tens of thousands of addresses.

use std::sync::OnceLock;

use crate::duplicates::{are_variants, keeps_first};
use crate::names::NameTable;
use crate::symbol::{PackedSymbols, Symbol};
use crate::table::shown_name;

/// Names and how they are displayed, for comparisons.
#[derive(Clone, Copy)]
pub(crate) struct ComparedNames<'n> {
    pub(crate) names: &'n NameTable,
    pub(crate) demangle: bool,
}

impl ComparedNames<'_> {
    /// Whether `first`, which was inserted earlier, is kept instead of `second` at the same address.
    pub(crate) fn prefers(self, first: &Symbol, second: &Symbol) -> bool {
        keeps_first(first, second, || {
            // Exported symbols are in both ELF symbol tables, and the displayed names of thousands of other pairs are
            // equal, too (variants of one constructor or destructor, such as C1 and C2); demangling them would take most of
            // the time. If the displayed names are equal, the result does not depend on their text: the first mangled name
            // is returned for both, unless it contains `SyS`, since aliases of system calls have a separate rule.
            let (a, b) = (self.names.get(first.name), self.names.get(second.name));
            let alike = first.form == second.form && (a == b || are_variants(a, b));
            if alike && !a.contains("SyS") {
                return (a.into(), a.into());
            }
            let shown = |raw, symbol: &Symbol| shown_name(raw, symbol.form, self.demangle);
            (shown(a, first), shown(b, second))
        })
    }

    /// Compares `symbols` of one address in order of insertion; returns the position of the symbol that is kept (0 without
    /// symbols). Each comparison calls `drop` with the positions of the later symbol and of the symbol that is not kept.
    pub(crate) fn kept(
        self,
        symbols: impl Iterator<Item = Symbol>,
        mut drop: impl FnMut(usize, usize),
    ) -> usize {
        let mut best: Option<(usize, Symbol)> = None;
        for (position, symbol) in symbols.enumerate() {
            match &best {
                Some((_, kept)) if self.prefers(kept, &symbol) => drop(position, position),
                Some((kept_position, _)) => {
                    drop(position, *kept_position);
                    best = Some((position, symbol));
                }
                None => best = Some((position, symbol)),
            }
        }
        best.map_or(0, |(position, _)| position)
    }
}

/// The groups of a table, by ascending address. Each consists of several symbols at one address.
#[derive(Debug, Clone, Default)]
pub(crate) struct TiedSymbols {
    /// All symbols of all groups; those of a group in order of insertion.
    symbols: PackedSymbols,
    /// The end of each group in `symbols`.
    ends: Vec<u32>,
    /// The kept symbol of each group as a position in it, once determined.
    kept: Vec<OnceLock<u32>>,
}

impl TiedSymbols {
    /// Adds a group and returns its number.
    pub(crate) fn push(&mut self, group: impl Iterator<Item = Symbol>) -> u32 {
        group.for_each(|symbol| self.symbols.push(&symbol));
        self.ends.push(self.symbols.len() as u32);
        self.kept.push(OnceLock::new());
        self.ends.len() as u32 - 1
    }

    /// The kept symbol of a group.
    pub(crate) fn kept(&self, group: u32, names: ComparedNames<'_>) -> Option<Symbol> {
        let kept = self.kept.get(group as usize)?;
        let ignore_dropped = |_: usize, _: usize| {};
        let kept = kept.get_or_init(|| names.kept(self.members(group), ignore_dropped) as u32);
        self.symbols.get(self.start(group).checked_add(*kept)?)
    }

    /// The symbols of a group, in order of insertion.
    pub(crate) fn members(&self, group: u32) -> impl Iterator<Item = Symbol> {
        let end = self.ends.get(group as usize).copied().unwrap_or_default();
        (self.start(group)..end).filter_map(|at| self.symbols.get(at))
    }

    fn start(&self, group: u32) -> u32 {
        let before = (group as usize).checked_sub(1);
        before
            .and_then(|before| self.ends.get(before))
            .copied()
            .unwrap_or_default()
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Frees reserved memory.
    pub(crate) fn shrink(&mut self) {
        self.symbols.shrink();
        self.ends.shrink_to_fit();
        self.kept.shrink_to_fit();
    }
}
