//! Collects symbols in the order an object lists them, and does to them what perf does.

use std::sync::Arc;

use crate::choice::{are_variants, keeps_first};
use crate::files::FileBytes;
use crate::names::{NameAt, Names, PlainNames};
use crate::overlaps::Overlaps;
use crate::symbol::{Binding, NameForm, Symbol, SymbolKind, Symbols};
use crate::table::{AddressSpace, SymbolTable, shown_name};
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
    pub(crate) kind: SymbolKind,
    pub(crate) form: NameForm,
}

/// A table in the making.
pub(crate) struct TableBuilder {
    /// In order of insertion; those erased stay, unreferenced.
    symbols: Symbols,
    names: Names,
    /// Positions in `symbols`, sorted by start, equal ones in order of insertion.
    live: Vec<u32>,
    /// How many of `symbols` have been sorted into `live`.
    merged: usize,
    changes: Vec<TreeChange>,
    demangle: bool,
}

impl TableBuilder {
    /// For names that are in no file, or in one that is not kept.
    pub(crate) fn new(demangle: bool) -> Self {
        Self {
            symbols: Symbols::default(),
            names: Names::default(),
            live: Vec::new(),
            merged: 0,
            changes: Vec::new(),
            demangle,
        }
    }

    /// For names in `file`, where they stay.
    pub(crate) fn of_file(demangle: bool, file: FileBytes) -> Self {
        Self {
            names: Names::of_file(file),
            ..Self::new(demangle)
        }
    }

    /// Adds a symbol. Beyond four thousand million symbols or half as many bytes of names, it is left out.
    pub(crate) fn push(&mut self, new: NewSymbol, name: &[u8]) {
        if let Some(name) = self.names.push(name) {
            self.push_named(new, name);
        }
    }

    /// The names of a string table that need no second look; see [`Names::plain`].
    pub(crate) fn plain_names(&self, strings: &[u8]) -> Option<PlainNames> {
        self.names.plain(strings)
    }

    /// The same for a name whose place is known.
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

    /// How many symbols were added: the position of the next one.
    pub(crate) fn len(&self) -> u32 {
        self.symbols.len() as u32
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Gives symbols without size the space up to the next one, and the last one a page and what is left of its own.
    /// `separates(a, b)` tells of the symbols at two positions whether the next is of another region and must not be reached.
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

    /// Leaves one symbol per address.
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
        // Stable, quick on what is sorted already, and without room for keys beside millions of positions.
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
            // What is exported is in both tables, and thousands of other pairs are alike; demangling would take most of the
            // time. (A system call is none of them.)
            let (a, b) = (raw(&first), raw(&second));
            let alike = first.form == second.form && (a == b || are_variants(a, b));
            if alike && !raw(&first).contains("SyS") {
                return (raw(&first).into(), raw(&first).into());
            }
            (shown(&first), shown(&second))
        })
    }

    /// The finished table.
    pub(crate) fn finish(mut self, space: AddressSpace) -> SymbolTable {
        self.merge();
        let changes = std::mem::take(&mut self.changes);
        let overlaps = Overlaps::new(&self.symbols, &self.live, changes);
        let mut symbols = self.symbols;
        if overlaps.is_some() {
            symbols = symbols.picked(&self.live);
        } else {
            // No two have one start. This needs no second list.
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

    /// Finished tables of run-time addresses without overlaps, the symbol at each position in the one that `group` says.
    pub(crate) fn finish_apart(
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
        let others: Vec<Symbols> = members
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
            space: AddressSpace::Runtime,
            demangle: self.demangle,
        };
        let first = std::iter::once(self.symbols);
        first.chain(others).map(table).collect()
    }
}

fn round_up(address: u64) -> u64 {
    address.checked_next_multiple_of(PAGE).unwrap_or(address)
}
