//! Builds symbol tables from an object's symbols, with perf's rules for missing ends and
//! duplicates.

use std::sync::Arc;

use crate::files::FileBytes;
use crate::names::{AsciiNames, NameAt, NameTable};
use crate::overlaps::{InsertionHistory, InsertionStep, OverlapFinder, OverlappingRanges};
use crate::symbol::{Binding, NameForm, PackedSymbols, Symbol, SymbolKind};
use crate::table::{AddressKind, SymbolTable};
use crate::ties::{ComparedNames, TiedSymbols};

/// Unit to which the end of the last symbol of a region is rounded, independent of the machine's page
/// size, as in perf.
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
    /// In order of insertion.
    symbols: PackedSymbols,
    names: NameTable,
    /// Positions in `symbols`, sorted by start and then by order of insertion.
    sorted: Vec<u32>,
    /// The insertions into `sorted`.
    steps: Vec<InsertionStep>,
    /// Number of symbols whose ends are final.
    fixed: u32,
    demangle: bool,
}

impl TableBuilder {
    /// Creates a builder for names that are not in a file, or in a file that isn't kept in memory.
    pub(crate) fn new(demangle: bool) -> Self {
        Self {
            symbols: PackedSymbols::default(),
            names: NameTable::default(),
            sorted: Vec::new(),
            steps: Vec::new(),
            fixed: 0,
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

    /// Adds a symbol. It is dropped if there are 2^32 - 1 symbols already, or 2 GiB of names outside of the file.
    pub(crate) fn push(&mut self, new: NewSymbol, name: &[u8]) {
        if let Some(name) = self.names.push(name) {
            self.push_named(new, name);
        }
    }

    /// The names of a string table that can be used without validation; see [`NameTable::ascii_names`].
    pub(crate) fn ascii_names(&self, strings: &[u8]) -> Option<AsciiNames> {
        self.names.ascii_names(strings)
    }

    /// Adds a symbol whose name has a known position in the name table.
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

    /// Extends symbols without size to the next one, or the last one of a region to the first page boundary at least a page
    /// after its start. `separates(a, b)` returns whether the symbols at two positions are in different regions.
    pub(crate) fn fix_ends(&mut self, separates: impl Fn(u32, u32) -> bool) {
        self.merge();
        // Symbols before this position have their final ends. Those still without size were followed by a symbol with the same
        // start; perf drops such duplicates in favor of one with a size.
        let first_new = self.fixed;
        self.fixed = self.len();
        for pair in self.sorted.windows(2) {
            let &[position, next] = pair else { continue };
            if position < first_new || !self.symbols.has_no_size(position) {
                continue;
            }
            let (Some(start), Some(next_start)) =
                (self.symbols.start(position), self.symbols.start(next))
            else {
                continue;
            };
            let end = match separates(position, next) {
                true => end_of_last(start),
                false => next_start,
            };
            self.symbols.set_end(position, end);
        }
        if let Some(last) = self.sorted.last().copied()
            && let Some(start) = self.symbols.start(last)
            && last >= first_new
            && self.symbols.has_no_size(last)
        {
            self.symbols.set_end(last, end_of_last(start));
        }
    }

    /// Keeps one symbol per address, of those added so far. This only marks the step; the symbol is chosen later, by
    /// [`ComparedNames::kept`].
    pub(crate) fn drop_duplicates(&mut self) {
        self.merge();
        if let Some(step) = self.steps.last_mut() {
            step.drops_duplicates = true;
        }
    }

    /// Sorts the symbols added since the last call into the others, after those of equal start.
    fn merge(&mut self) {
        let new = self.merged()..self.len();
        if new.is_empty() {
            return;
        }
        self.steps.push(InsertionStep {
            inserted: new.clone(),
            drops_duplicates: false,
        });
        let is_first = self.sorted.is_empty();
        self.sorted.extend(self.symbols.sorted(new));
        if !is_first {
            // The stable sort merges the two sorted sequences.
            let symbols = &self.symbols;
            self.sorted.sort_by_key(|&position| symbols.start(position));
        }
    }

    /// Number of symbols in `sorted`.
    fn merged(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.inserted.end)
    }

    /// Number of symbols added before duplicates were last dropped.
    fn compared(&self) -> u32 {
        let mut steps = self.steps.iter().rev();
        let last = steps.find(|step| step.drops_duplicates);
        last.map_or(0, |step| step.inserted.end)
    }

    /// Returns the finished table.
    pub(crate) fn finish(mut self, space: AddressKind) -> SymbolTable {
        self.merge();
        let mut symbols = PackedSymbols::with_capacity(self.sorted.len());
        let mut tied = TiedSymbols::default();
        let mut overlap_finder = OverlapFinder::default();
        self.for_each_address(|duplicates, others| {
            let added = &self.symbols;
            if let [first, _, ..] = duplicates {
                let group = tied.push(duplicates.iter().filter_map(|at| added.get(*at)));
                let start = added.start(*first).unwrap_or_default();
                let ends = tied.members(group).map(|symbol| symbol.end);
                overlap_finder.add(start, ends.max().unwrap_or_default());
                symbols.push_group(start, group);
            }
            let alone = if duplicates.len() == 1 {
                duplicates
            } else {
                &[]
            };
            for position in alone.iter().chain(others) {
                let (start, end) = added.extent_at(*position).unwrap_or_default();
                overlap_finder.add(start, end);
                symbols.push_from(added, *position);
            }
        });
        let overlaps = OverlappingRanges::new(overlap_finder, || self.history());
        symbols.shrink();
        tied.shrink();
        self.names.shrink();
        SymbolTable {
            symbols,
            tied,
            names: Arc::new(self.names),
            overlaps,
            is_numbered: false,
            space,
            demangle: self.demangle,
        }
    }

    /// Returns how the table is built, to find the symbols of overlapping ranges as perf does.
    fn history(&self) -> InsertionHistory {
        // The position in the finished table (`at`) by position in the builder (`position`): each is set below.
        let mut place = vec![u32::MAX; self.symbols.len()];
        let mut tied = Vec::new();
        let mut table_positions = 0..;
        let mut set = |position: &u32, at: u32| {
            if let Some(place) = place.get_mut(*position as usize) {
                *place = at;
            }
        };
        self.for_each_address(|duplicates, others| {
            if !duplicates.is_empty() {
                let at = table_positions.next().unwrap_or_default();
                duplicates.iter().for_each(|position| set(position, at));
            }
            if duplicates.len() > 1 {
                tied.extend_from_slice(duplicates);
            }
            for position in others {
                set(position, table_positions.next().unwrap_or_default());
            }
        });
        InsertionHistory {
            starts: self.symbols.starts().collect(),
            steps: self.steps.clone(),
            place,
            tied,
        }
    }

    /// Calls `each` for each address, ascending, with the positions of its symbols in two slices: those added before duplicates
    /// were last dropped, of which perf keeps one, and those added later, all of which are kept.
    fn for_each_address(&self, mut each: impl FnMut(&[u32], &[u32])) {
        let compared = self.compared();
        let start = |position: &u32| self.symbols.start(*position);
        for same_start in self.sorted.chunk_by(|a, b| start(a) == start(b)) {
            let duplicate_count = same_start.partition_point(|position| *position < compared);
            let (duplicates, others) = same_start.split_at(duplicate_count);
            each(duplicates, others);
        }
    }

    /// Returns `count` finished tables of run-time addresses, for symbols that don't overlap. `table_of` returns the index of
    /// the table for the symbol at a position.
    pub(crate) fn finish_separately(
        mut self,
        count: usize,
        table_of: impl Fn(u32) -> usize,
    ) -> Vec<SymbolTable> {
        self.merge();
        self.names.shrink();
        let compared_names = ComparedNames {
            names: &self.names,
            demangle: self.demangle,
        };
        let ignore_dropped = |_: usize, _: usize| {};
        let mut tables = vec![PackedSymbols::default(); count];
        self.for_each_address(|duplicates, others| {
            let symbols = duplicates.iter().filter_map(|at| self.symbols.get(*at));
            let kept = match duplicates {
                [] | [_] => 0,
                _ => compared_names.kept(symbols, ignore_dropped),
            };
            for position in duplicates.get(kept).into_iter().chain(others) {
                if let Some(table) = tables.get_mut(table_of(*position))
                    && let Some(symbol) = self.symbols.get(*position)
                {
                    table.push(&symbol);
                }
            }
        });
        let demangle = self.demangle;
        let names = Arc::new(self.names);
        let table = |mut symbols: PackedSymbols| {
            symbols.shrink();
            SymbolTable {
                symbols,
                tied: TiedSymbols::default(),
                names: Arc::clone(&names),
                overlaps: None,
                is_numbered: false,
                space: AddressKind::Runtime,
                demangle,
            }
        };
        tables.into_iter().map(table).collect()
    }
}

/// The end of a symbol without size that is the last of its region.
fn end_of_last(start: u64) -> u64 {
    let boundary = start.checked_next_multiple_of(PAGE).unwrap_or(start);
    boundary.saturating_add(PAGE)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::duplicates::keeps_first;
    use crate::tree::{SearchTree, TreeChange};

    /// Symbols as perf keeps them: every list sorted, duplicates dropped at once.
    #[derive(Default)]
    struct EagerTable {
        /// All symbols with their names, in order of insertion.
        all: Vec<(Symbol, String)>,
        /// Indices in `all` of the symbols that were not dropped, sorted by start.
        live: Vec<usize>,
        /// The changes of perf's search tree.
        changes: Vec<TreeChange>,
    }

    impl EagerTable {
        fn insert(&mut self, new: &[NewSymbol]) {
            let first = self.all.len();
            for symbol in new {
                self.all.push((
                    Symbol {
                        start: symbol.start,
                        end: symbol.start + symbol.size,
                        binding: symbol.binding,
                        kind: symbol.kind,
                        form: symbol.form,
                        name: NameAt::default(),
                    },
                    name(self.all.len()),
                ));
            }
            self.live.extend(first..self.all.len());
            self.live.sort_by_key(|at| self.all[*at].0.start);
            let range = first as u32..self.all.len() as u32;
            self.changes.push(TreeChange::Insert(range));
        }

        fn fix_ends(&mut self) {
            for place in 0..self.live.len() {
                let next = self.live.get(place + 1).map(|next| self.all[*next].0.start);
                let (symbol, _) = &mut self.all[self.live[place]];
                if symbol.end == symbol.start {
                    symbol.end = next.unwrap_or(symbol.start.next_multiple_of(PAGE) + PAGE);
                }
            }
        }

        fn drop_duplicates(&mut self) {
            let mut kept: Vec<usize> = Vec::new();
            for at in std::mem::take(&mut self.live) {
                let (symbol, name) = &self.all[at];
                match kept.last_mut() {
                    Some(last) if self.all[*last].0.start == symbol.start => {
                        let (rival, rival_name) = &self.all[*last];
                        let keeps =
                            keeps_first(rival, symbol, || (rival_name.clone(), name.clone()));
                        let loser = if keeps {
                            at
                        } else {
                            std::mem::replace(last, at)
                        };
                        self.changes.push(TreeChange::Erase(loser as u32));
                    }
                    _ => kept.push(at),
                }
            }
            self.live = kept;
        }

        /// The name that perf finds at an address.
        fn find(&self, address: u64) -> Option<&str> {
            let starts: Vec<u64> = self.all.iter().map(|(symbol, _)| symbol.start).collect();
            let mut place = vec![u32::MAX; self.all.len()];
            for (position, at) in (0..).zip(&self.live) {
                place[*at] = position;
            }
            let tree = SearchTree::replay(&starts, &self.changes, &place);
            let symbol = |at: u32| Some(self.all[*self.live.get(at as usize)?].0);
            let found = tree.find(symbol, address)?;
            Some(&self.all[self.live[found as usize]].1)
        }
    }

    /// A name with 0 to 2 leading underscores: of duplicates, perf prefers those with fewer.
    fn name(number: usize) -> String {
        format!("{}{number}", &"__"[..number % 3])
    }

    fn new_symbol() -> impl Strategy<Value = NewSymbol> {
        let bindings = vec![Binding::Local, Binding::Global, Binding::Weak];
        (0u64..30, 0u64..6, prop::sample::select(bindings)).prop_map(|(start, size, binding)| {
            NewSymbol {
                start: 10 * start,
                size: 5 * size,
                binding,
                kind: SymbolKind::Function,
                form: NameForm::Plain,
            }
        })
    }

    proptest! {
        #[test]
        fn tables_equal_those_of_eager_insertion(
            lists in prop::collection::vec(prop::collection::vec(new_symbol(), 0..40), 0..3),
            rest in prop::collection::vec(new_symbol(), 0..5),
        ) {
            let mut builder = TableBuilder::new(false);
            let mut eager = EagerTable::default();
            let mut numbers = 0..;
            let mut push = |builder: &mut TableBuilder, list: &[NewSymbol]| {
                for (new, number) in list.iter().zip(&mut numbers) {
                    builder.push(*new, name(number).as_bytes());
                }
            };
            for list in &lists {
                push(&mut builder, list);
                // All symbols are in one region.
                builder.fix_ends(|_, _| false);
                builder.drop_duplicates();
                eager.insert(list);
                eager.fix_ends();
                eager.drop_duplicates();
            }
            // Symbols that are added after duplicates were last dropped.
            push(&mut builder, &rest);
            eager.insert(&rest);
            let table = builder.finish(AddressKind::Runtime);
            // No symbol starts after 290, and none that is created with a size ends after 290 + 25.
            for address in 0..320 {
                let found = table.find(address).map(|at| table.name(at).into_owned());
                prop_assert_eq!(found.as_deref(), eager.find(address), "{}", address);
            }
            let all = table.iter().map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()));
            let expected = eager.live.iter().map(|at| {
                let (symbol, name) = &eager.all[*at];
                (symbol.start, symbol.end, name.clone())
            });
            prop_assert_eq!(all.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
