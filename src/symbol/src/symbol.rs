//! Symbols, and compact storage of many of them.

use crate::names::NameAt;

/// `STB_*`: binding of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// `STB_LOCAL`, and a lower-case letter in kallsyms.
    Local,
    /// `STB_GLOBAL`, and an upper-case letter in kallsyms.
    Global,
    /// `STB_WEAK`, and `W` in kallsyms.
    Weak,
    /// `STB_GNU_UNIQUE` and others.
    Other,
}

/// Type of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// Code: `STT_FUNC`, `STT_GNU_IFUNC`, a text letter in kallsyms.
    Function,
    /// Data: `STT_OBJECT`, other letters in kallsyms.
    Variable,
    /// A location in code without type, as in assembly: `STT_NOTYPE`.
    Label,
}

/// Conversion of the stored name to the displayed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameForm {
    /// Unchanged.
    Plain,
    /// From an ELF string table: demangled when displayed.
    Mangled,
    /// The target of a PLT entry: demangled when displayed, with the suffix `@plt`.
    PltTarget,
}

/// A named range of addresses. Its name is in the table: [`SymbolTable::name`](crate::SymbolTable::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub start: u64,
    /// End address, exclusive. Equal to `start` for a symbol without size, which covers that one
    /// address.
    pub end: u64,
    /// Its binding.
    pub binding: Binding,
    /// Its type.
    pub kind: SymbolKind,
    pub(crate) form: NameForm,
    pub(crate) name: NameAt,
}

impl Symbol {
    /// Whether it is an entry of the procedure linkage table, for which the object has no symbol.
    #[must_use]
    pub fn is_plt_entry(&self) -> bool {
        self.form == NameForm::PltTarget
    }
}

/// Symbols stored in 16 bytes each. Kernels and compilers have hundreds of thousands.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedSymbols {
    list: Vec<PackedSymbol>,
    /// Sizes too large for [`PackedSymbol::extent`].
    long: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct PackedSymbol {
    start: u64,
    /// From the lowest bit: the size (26 bits), or [`IS_LONG`] and its index in [`PackedSymbols::long`];
    /// type and name form (3), binding (2).
    extent: u32,
    name: NameAt,
}

const SIZE: u32 = (1 << 26) - 1;
const IS_LONG: u32 = 1 << 26;
const SORT: u32 = 27;
const BINDING: u32 = 30;

/// One per value of the three bits; the last is unused. Entries of a PLT are functions.
const SORTS: [(SymbolKind, NameForm); 8] = [
    (SymbolKind::Function, NameForm::Plain),
    (SymbolKind::Variable, NameForm::Plain),
    (SymbolKind::Label, NameForm::Plain),
    (SymbolKind::Function, NameForm::Mangled),
    (SymbolKind::Variable, NameForm::Mangled),
    (SymbolKind::Label, NameForm::Mangled),
    (SymbolKind::Function, NameForm::PltTarget),
    (SymbolKind::Function, NameForm::PltTarget),
];
const BINDINGS: [Binding; 4] = [
    Binding::Local,
    Binding::Global,
    Binding::Weak,
    Binding::Other,
];

impl PackedSymbols {
    /// Adds a symbol.
    pub(crate) fn push(&mut self, symbol: &Symbol) {
        let sort = (symbol.kind as u32 + 3 * symbol.form as u32).min(6) << SORT;
        let binding = (symbol.binding as u32) << BINDING;
        let extent = sort | binding | self.extent(symbol.end.wrapping_sub(symbol.start));
        self.list.push(PackedSymbol {
            start: symbol.start,
            extent,
            name: symbol.name,
        });
    }

    fn extent(&mut self, size: u64) -> u32 {
        match u32::try_from(size) {
            Ok(size) if size <= SIZE => size,
            // No file has 64 million symbols of 64 MiB and more.
            _ => {
                let number = self.long.len() as u32 & SIZE;
                self.long.push(size);
                IS_LONG | number
            }
        }
    }

    fn unpack(&self, packed: &PackedSymbol) -> Symbol {
        let small = packed.extent & SIZE;
        let size = match packed.extent & IS_LONG {
            0 => small.into(),
            _ => self.long.get(small as usize).copied().unwrap_or_default(),
        };
        let (kind, form) = SORTS[(packed.extent >> SORT & 7) as usize];
        Symbol {
            start: packed.start,
            end: packed.start.wrapping_add(size),
            binding: BINDINGS[(packed.extent >> BINDING & 3) as usize],
            kind,
            form,
            name: packed.name,
        }
    }

    /// The symbol at a position.
    pub(crate) fn get(&self, position: u32) -> Option<Symbol> {
        let packed = self.list.get(position as usize)?;
        Some(self.unpack(packed))
    }

    /// The start of the symbol at a position.
    pub(crate) fn start(&self, position: u32) -> Option<u64> {
        self.list.get(position as usize).map(|symbol| symbol.start)
    }

    /// Sets the end of the symbol at a position.
    pub(crate) fn set_end(&mut self, position: u32, end: u64) {
        let Some(start) = self.start(position) else {
            return;
        };
        let extent = self.extent(end.wrapping_sub(start));
        if let Some(packed) = self.list.get_mut(position as usize) {
            packed.extent = packed.extent & !(SIZE | IS_LONG) | extent;
        }
    }

    /// Adds an offset to all symbols.
    pub(crate) fn shift(&mut self, distance: u64) {
        for symbol in &mut self.list {
            symbol.start = symbol.start.wrapping_add(distance);
        }
    }

    /// Number of symbols, which are sorted by start, that start at or before `address`.
    pub(crate) fn up_to(&self, address: u64) -> usize {
        self.list.partition_point(|symbol| symbol.start <= address)
    }

    /// Keeps those at the ascending `positions` and sorts them by start, which must be distinct.
    pub(crate) fn keep_sorted(&mut self, positions: &[u32]) {
        let mut wanted = positions.iter().peekable();
        let mut at = 0;
        self.list.retain(|_| {
            let keeps = wanted.next_if_eq(&&at).is_some();
            at += 1;
            keeps
        });
        self.list.sort_unstable_by_key(|symbol| symbol.start);
        self.list.shrink_to_fit();
    }

    /// The symbols at `positions`, in that order.
    pub(crate) fn picked(&self, positions: &[u32]) -> Self {
        let mut picked = Self {
            list: Vec::with_capacity(positions.len()),
            long: Vec::new(),
        };
        for symbol in positions.iter().filter_map(|at| self.get(*at)) {
            picked.push(&symbol);
        }
        picked
    }

    /// Iterates over all symbols.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Symbol> + ExactSizeIterator {
        self.list.iter().map(|packed| self.unpack(packed))
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_symbols_are_unpacked_unchanged() {
        let mut symbols = PackedSymbols::default();
        let mut expected = Vec::new();
        for ((kind, form), binding) in SORTS.into_iter().zip(BINDINGS.into_iter().cycle()) {
            for size in [0, 1, SIZE.into(), u64::from(SIZE) + 1, u64::MAX - 7] {
                let start = expected.len() as u64;
                expected.push(Symbol {
                    start,
                    end: start.wrapping_add(size),
                    binding,
                    kind,
                    form,
                    name: NameAt::default(),
                });
            }
        }
        expected.iter().for_each(|symbol| symbols.push(symbol));
        assert!(symbols.iter().eq(expected.iter().copied()));
        for end in [3, u64::MAX, 9] {
            symbols.set_end(2, end);
            expected[2].end = end;
            assert!(symbols.iter().eq(expected.iter().copied()));
        }
        symbols.shift(100);
        let moved = symbols.get(3).map(|symbol| (symbol.start, symbol.end));
        assert_eq!(moved, Some((103, 103 + u64::from(SIZE) + 1)));
    }

    #[test]
    fn retained_symbols_are_sorted_by_start() {
        let mut symbols = PackedSymbols::default();
        for start in [50, 10, 40, 20, 30] {
            symbols.push(&Symbol {
                start,
                end: start,
                binding: Binding::Local,
                kind: SymbolKind::Function,
                form: NameForm::Plain,
                name: NameAt::default(),
            });
        }
        let starts = |symbols: &PackedSymbols| symbols.iter().map(|s| s.start).collect::<Vec<_>>();
        assert_eq!(starts(&symbols.picked(&[4, 0, 9])), [30, 50]);
        symbols.keep_sorted(&[0, 1, 4]);
        assert_eq!(starts(&symbols), [10, 30, 50]);
        assert_eq!([9, 10, 35].map(|at| symbols.up_to(at)), [0, 1, 2]);
    }
}
