//! One symbol, and many of them in little room.

use crate::names::NameAt;

/// `STB_*`: who sees a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// `STB_LOCAL`, and a lower-case letter in kallsyms.
    Local,
    /// `STB_GLOBAL`, and an upper-case letter in kallsyms.
    Global,
    /// `STB_WEAK`, and `W` in kallsyms.
    Weak,
    /// `STB_GNU_UNIQUE` and what else there may be.
    Other,
}

/// What a symbol names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// Code: `STT_FUNC`, `STT_GNU_IFUNC`, a text letter in kallsyms.
    Function,
    /// Data: `STT_OBJECT`, another letter in kallsyms.
    Variable,
    /// A place in code of no type, as assembly has them: `STT_NOTYPE`.
    Label,
}

/// How the stored name becomes the one shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameForm {
    /// As it stands.
    Plain,
    /// Out of an ELF string table: demangled when shown.
    Mangled,
    /// The target of a PLT entry: demangled when shown, and `@plt` after it.
    PltTarget,
}

/// A named range of addresses. Its name is in the table: [`SymbolTable::name`](crate::SymbolTable::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub start: u64,
    /// First address after it. Equal to `start` for a symbol without size, which then stands for
    /// that one address.
    pub end: u64,
    /// Who sees it.
    pub binding: Binding,
    /// What it names.
    pub kind: SymbolKind,
    pub(crate) form: NameForm,
    pub(crate) name: NameAt,
}

impl Symbol {
    /// Whether it is an entry of the procedure linkage table, which the object's own symbols don't name.
    #[must_use]
    pub fn is_plt_entry(&self) -> bool {
        self.form == NameForm::PltTarget
    }
}

/// Symbols at 16 bytes each. Kernels and compilers have hundreds of thousands.
#[derive(Debug, Clone, Default)]
pub(crate) struct Symbols {
    list: Vec<Packed>,
    /// Sizes that are too large for [`Packed::extent`].
    long: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Packed {
    start: u64,
    /// From the lowest bit: the size (26 bits), or where it is in [`Symbols::long`] and [`LONG`]; what it names
    /// and how the name is shown (3), the binding (2).
    extent: u32,
    name: NameAt,
}

const SIZE: u32 = (1 << 26) - 1;
const LONG: u32 = 1 << 26;
const SORT: u32 = 27;
const BINDING: u32 = 30;

/// One for each value of the three bits; the last is never written. Entries of a PLT are functions.
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

impl Symbols {
    /// Adds a symbol.
    pub(crate) fn push(&mut self, symbol: &Symbol) {
        let sort = (symbol.kind as u32 + 3 * symbol.form as u32).min(6) << SORT;
        let binding = (symbol.binding as u32) << BINDING;
        let extent = sort | binding | self.extent(symbol.end.wrapping_sub(symbol.start));
        self.list.push(Packed {
            start: symbol.start,
            extent,
            name: symbol.name,
        });
    }

    fn extent(&mut self, size: u64) -> u32 {
        match u32::try_from(size) {
            Ok(size) if size <= SIZE => size,
            // 64 million symbols of 64 MiB and more are not in any file.
            _ => {
                let number = self.long.len() as u32 & SIZE;
                self.long.push(size);
                LONG | number
            }
        }
    }

    fn unpack(&self, packed: &Packed) -> Symbol {
        let small = packed.extent & SIZE;
        let size = match packed.extent & LONG {
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

    /// Where the symbol at a position starts.
    pub(crate) fn start(&self, position: u32) -> Option<u64> {
        self.list.get(position as usize).map(|symbol| symbol.start)
    }

    /// Moves the end of the symbol at a position.
    pub(crate) fn set_end(&mut self, position: u32, end: u64) {
        let Some(start) = self.start(position) else {
            return;
        };
        let extent = self.extent(end.wrapping_sub(start));
        if let Some(packed) = self.list.get_mut(position as usize) {
            packed.extent = packed.extent & !(SIZE | LONG) | extent;
        }
    }

    /// Moves all symbols.
    pub(crate) fn shift(&mut self, distance: u64) {
        for symbol in &mut self.list {
            symbol.start = symbol.start.wrapping_add(distance);
        }
    }

    /// How many of the symbols, which are sorted by start, start at `address` or before.
    pub(crate) fn up_to(&self, address: u64) -> usize {
        self.list.partition_point(|symbol| symbol.start <= address)
    }

    /// Keeps those at `positions`, which rise, and sorts them by start; no two may have the same.
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

    /// Those at `positions`, in that order.
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

    /// All of them.
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
    fn what_goes_in_comes_out() {
        let mut symbols = Symbols::default();
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
    fn some_are_kept_in_the_order_of_their_starts() {
        let mut symbols = Symbols::default();
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
        let starts = |symbols: &Symbols| symbols.iter().map(|s| s.start).collect::<Vec<_>>();
        assert_eq!(starts(&symbols.picked(&[4, 0, 9])), [30, 50]);
        symbols.keep_sorted(&[0, 1, 4]);
        assert_eq!(starts(&symbols), [10, 30, 50]);
        assert_eq!([9, 10, 35].map(|at| symbols.up_to(at)), [0, 1, 2]);
    }
}
