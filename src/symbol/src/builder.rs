//! Builds symbol tables from an object's symbols, with perf's rules for missing ends and
//! duplicates.

use std::sync::Arc;

use crate::duplicates::{are_variants, keeps_first};
use crate::files::FileBytes;
use crate::names::{NameAt, NameTable, PlainNames};
use crate::overlaps::OverlappingRanges;
use crate::symbol::{Binding, NameForm, PackedSymbols, Symbol, SymbolKind};
use crate::table::{AddressKind, SymbolTable, shown_name};
use crate::tree::TreeChange;

/// Unit to which the end of the last symbol is rounded, independent of the machine's page size, as
/// in perf.
const PAGE: u64 = 4096;

/// A symbol from an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewSymbol {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) binding: Binding,
    pub(crate) kind: SymbolKind,
    pub(crate) form: NameForm,
}

/// A symbol table under construction.
pub(crate) struct TableBuilder {
    /// In order of insertion, including erased ones.
    symbols: PackedSymbols,
    names: NameTable,
    /// Positions in `symbols`, sorted by start and then by order of insertion.
    live: Vec<u32>,
    /// Number of `symbols` already sorted into `live`.
    merged: usize,
    changes: Vec<TreeChange>,
    demangle: bool,
}

impl TableBuilder {
    /// Creates a builder for names that are not in a file, or in a file that isn't kept in memory.
    pub(crate) fn new(demangle: bool) -> Self {
        Self {
            symbols: PackedSymbols::default(),
            names: NameTable::default(),
            live: Vec::new(),
            merged: 0,
            changes: Vec::new(),
            demangle,
        }
    }

    /// Creates a builder for names that remain in `file`.
    pub(crate) fn of_file(demangle: bool, file: FileBytes) -> Self {
        Self {
            names: NameTable::of_file(file),
            ..Self::new(demangle)
        }
    }

    /// Adds a symbol. Symbols beyond 2^32, or beyond 2 GiB of names, are dropped.
    pub(crate) fn push(&mut self, new: NewSymbol, name: &[u8]) {
        if let Some(name) = self.names.push(name) {
            self.push_named(new, name);
        }
    }

    /// The names of a string table that can be used without validation; see [`NameTable::plain`].
    pub(crate) fn plain_names(&self, strings: &[u8]) -> Option<PlainNames> {
        self.names.plain(strings)
    }

    /// Adds a symbol with a name at a known position.
    pub(crate) fn push_named(&mut self, new: NewSymbol, name: NameAt) {
        if self.symbols.len() >= u32::MAX as usize {
            return;
        }
        self.symbols.push(&Symbol {
            start: new.start,
            end: new.start.saturating_add(new.size),
            binding: new.binding,
            kind: new.kind,
            form: new.form,
            name,
        });
    }

    /// Number of added symbols: the position of the next one.
    pub(crate) fn len(&self) -> u32 {
        self.symbols.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Extends symbols without size to the next one, and the last one to the end of the next page.
    /// `separates(a, b)` is whether the symbols at two positions are in different regions, so
    /// that the first must not reach the second.
    pub(crate) fn fix_ends(&mut self, separates: impl Fn(u32, u32) -> bool) {
        self.merge();
        for pair in self.live.windows(2) {
            let &[position, next] = pair else { continue };
            let (Some(symbol), Some(next_start)) =
                (self.symbols.get(position), self.symbols.start(next))
            else {
                continue;
            };
            if symbol.end == symbol.start {
                let end = if separates(position, next) {
                    round_up(symbol.end.saturating_add(PAGE))
                } else {
                    next_start
                };
                self.symbols.set_end(position, end);
            }
        }
        if let Some(last) = self.live.last().copied()
            && let Some(symbol) = self.symbols.get(last)
            && symbol.end == symbol.start
        {
            let end = round_up(symbol.start).saturating_add(PAGE);
            self.symbols.set_end(last, end);
        }
    }

    /// Keeps one symbol per address.
    pub(crate) fn drop_duplicates(&mut self) {
        self.merge();
        let mut live = std::mem::take(&mut self.live);
        let mut changes = std::mem::take(&mut self.changes);
        live.dedup_by(|position, rival| {
            if self.symbols.start(*position) != self.symbols.start(*rival) {
                return false;
            }
            if !self.prefers(*rival, *position) {
                std::mem::swap(rival, position);
            }
            changes.push(TreeChange::Erase(*position));
            true
        });
        self.live = live;
        self.changes = changes;
    }

    /// Sorts the symbols added since the last call into the others, after those of equal start.
    fn merge(&mut self) {
        if self.merged == self.symbols.len() {
            return;
        }
        let new = self.merged as u32..self.symbols.len() as u32;
        self.changes.push(TreeChange::Insert(new.clone()));
        self.live.extend(new);
        self.merged = self.symbols.len();
        let symbols = &self.symbols;
        // Stable, fast for sorted input, and without memory for keys of millions of positions.
        self.live.sort_by_key(|&position| symbols.start(position));
    }

    fn prefers(&self, first: u32, second: u32) -> bool {
        let (Some(first), Some(second)) = (self.symbols.get(first), self.symbols.get(second))
        else {
            return true;
        };
        keeps_first(&first, &second, || {
            let raw = |s: &Symbol| self.names.get(s.name);
            let shown = |s: &Symbol| shown_name(raw(s), s.form, self.demangle);
            // Exported symbols are in both tables, and thousands of other pairs are equal;
            // demangling would take most of the time. (Equal pairs are never system calls.)
            let (a, b) = (raw(&first), raw(&second));
            let alike = first.form == second.form && (a == b || are_variants(a, b));
            if alike && !raw(&first).contains("SyS") {
                return (raw(&first).into(), raw(&first).into());
            }
            (shown(&first), shown(&second))
        })
    }

    /// Returns the finished table.
    pub(crate) fn finish(mut self, space: AddressKind) -> SymbolTable {
        self.merge();
        let changes = std::mem::take(&mut self.changes);
        let overlaps = OverlappingRanges::new(&self.symbols, &self.live, changes);
        let mut symbols = self.symbols;
        if overlaps.is_some() {
            symbols = symbols.picked(&self.live);
        } else {
            // Starts are distinct. Sorted in place, to avoid a second list.
            self.live.sort_unstable();
            symbols.keep_sorted(&self.live);
        }
        self.names.shrink();
        SymbolTable {
            symbols,
            names: Arc::new(self.names),
            overlaps,
            is_numbered: false,
            space,
            demangle: self.demangle,
        }
    }

    /// Returns finished tables of run-time addresses without overlaps; `group` assigns each
    /// position to a table.
    pub(crate) fn finish_separately(
        mut self,
        groups: usize,
        group: impl Fn(u32) -> usize,
    ) -> Vec<SymbolTable> {
        self.merge();
        self.names.shrink();
        let names = Arc::new(self.names);
        let mut members = vec![Vec::new(); groups.saturating_sub(1)];
        self.live.retain(|position| {
            let others = group(*position).checked_sub(1);
            if let Some(members) = others.and_then(|other| members.get_mut(other)) {
                members.push(*position);
            }
            others.is_none()
        });
        let others: Vec<PackedSymbols> = members
            .iter()
            .map(|members| self.symbols.picked(members))
            .collect();
        self.live.sort_unstable();
        self.symbols.keep_sorted(&self.live);
        let table = |symbols| SymbolTable {
            symbols,
            names: Arc::clone(&names),
            overlaps: None,
            is_numbered: false,
            space: AddressKind::Runtime,
            demangle: self.demangle,
        };
        let first = std::iter::once(self.symbols);
        first.chain(others).map(table).collect()
    }
}

fn round_up(address: u64) -> u64 {
    address.checked_next_multiple_of(PAGE).unwrap_or(address)
}
