//! Collects symbols in the order an object lists them, and does to them what perf does.

use crate::choice::keeps_first;
use crate::overlaps::Overlaps;
use crate::table::{
    AddressSpace, Binding, NameForm, NameRange, Names, Symbol, SymbolTable, shown_name,
};
use crate::tree::TreeChange;

/// The unit to which the end of a last symbol is rounded, whatever the machine's page size
/// (perf has it as a number, too).
const PAGE: u64 = 4096;

/// One symbol as its object lists it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewSymbol {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) binding: Binding,
    pub(crate) is_function: bool,
    pub(crate) form: NameForm,
}

/// A table in the making.
pub(crate) struct TableBuilder {
    /// In order of insertion; those erased stay, unreferenced.
    symbols: Vec<Symbol>,
    names: Names,
    /// Positions in `symbols`, sorted by start, equal ones in order of insertion.
    live: Vec<u32>,
    /// How many of `symbols` have been sorted into `live`.
    merged: usize,
    changes: Vec<TreeChange>,
    demangle: bool,
}

impl TableBuilder {
    pub(crate) fn new(demangle: bool) -> Self {
        Self::with_capacity(demangle, 0, 0)
    }

    pub(crate) fn with_capacity(demangle: bool, symbols: usize, name_bytes: usize) -> Self {
        Self {
            symbols: Vec::with_capacity(symbols),
            names: Names::with_capacity(name_bytes),
            live: Vec::new(),
            merged: 0,
            changes: Vec::new(),
            demangle,
        }
    }

    /// Adds a symbol. Beyond four thousand million symbols or bytes of names, it is left out.
    pub(crate) fn push(&mut self, new: NewSymbol, name: &[u8]) {
        if self.symbols.len() >= u32::MAX as usize {
            return;
        }
        let Some(name) = self.names.push(name) else {
            return;
        };
        self.push_named(new, name);
    }

    fn push_named(&mut self, new: NewSymbol, name: NameRange) {
        self.symbols.push(Symbol {
            start: new.start,
            end: new.start.saturating_add(new.size),
            binding: new.binding,
            is_function: new.is_function,
            form: new.form,
            name,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Gives symbols without size the space up to the next one, and the last one a page and what is left of its own.
    /// `separates(a, b)` tells where the next symbol is of another region and must not be reached.
    pub(crate) fn fix_ends(&mut self, separates: impl Fn(&str, &str) -> bool) {
        self.merge();
        for pair in self.live.windows(2) {
            let &[position, next] = pair else { continue };
            let Some(next) = self.symbols.get(next as usize).copied() else {
                continue;
            };
            let Some(symbol) = self.symbols.get_mut(position as usize) else {
                continue;
            };
            if symbol.end == symbol.start {
                let (name, next_name) = (self.names.get(symbol.name), self.names.get(next.name));
                symbol.end = if separates(name, next_name) {
                    round_up(symbol.end.saturating_add(PAGE))
                } else {
                    next.start
                };
            }
        }
        let last = self.live.last().copied();
        if let Some(symbol) = last.and_then(|last| self.symbols.get_mut(last as usize))
            && symbol.end == symbol.start
        {
            symbol.end = round_up(symbol.start).saturating_add(PAGE);
        }
    }

    /// Leaves one symbol per address.
    pub(crate) fn drop_duplicates(&mut self) {
        self.merge();
        let live = std::mem::take(&mut self.live);
        let mut kept: Vec<u32> = Vec::with_capacity(live.len());
        for position in live {
            let rival = kept.last().copied().filter(|&last| {
                self.at(last).map(|symbol| symbol.start) == self.at(position).map(|s| s.start)
            });
            match rival {
                Some(rival) if self.prefers(rival, position) => {
                    self.changes.push(TreeChange::Erase(position));
                }
                Some(rival) => {
                    self.changes.push(TreeChange::Erase(rival));
                    kept.pop();
                    kept.push(position);
                }
                None => kept.push(position),
            }
        }
        self.live = kept;
    }

    /// Sorts what was pushed since the last call in among the rest, after those of equal start.
    fn merge(&mut self) {
        if self.merged == self.symbols.len() {
            return;
        }
        let new = self.merged as u32..self.symbols.len() as u32;
        self.changes.push(TreeChange::Insert(new.clone()));
        self.live.extend(new);
        self.merged = self.symbols.len();
        let symbols = &self.symbols;
        // Stable, and quick on what is sorted already.
        self.live
            .sort_by_key(|&position| symbols.get(position as usize).map(|s| s.start));
    }

    fn at(&self, position: u32) -> Option<&Symbol> {
        self.symbols.get(position as usize)
    }

    fn prefers(&self, first: u32, second: u32) -> bool {
        let (Some(first), Some(second)) = (self.at(first), self.at(second)) else {
            return true;
        };
        keeps_first(first, second, || {
            let shown = |s: &Symbol| shown_name(self.names.get(s.name), s.form, self.demangle);
            (shown(first), shown(second))
        })
    }

    /// The finished table.
    pub(crate) fn finish(mut self, space: AddressSpace) -> SymbolTable {
        self.merge();
        let symbols: Vec<Symbol> = self
            .live
            .iter()
            .filter_map(|&p| self.at(p))
            .copied()
            .collect();
        let overlaps = Overlaps::new(&symbols, &self.symbols, &self.live, self.changes);
        SymbolTable {
            symbols,
            names: self.names,
            overlaps,
            is_numbered: false,
            space,
            demangle: self.demangle,
        }
    }
}

fn round_up(address: u64) -> u64 {
    address.checked_next_multiple_of(PAGE).unwrap_or(address)
}
