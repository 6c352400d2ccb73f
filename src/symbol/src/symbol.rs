//! Symbols, and compact storage of many of them.

use std::ops::Range;

use crate::names::NameAt;

/// `STB_*`: binding of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// `STB_LOCAL`, and a lower-case letter in kallsyms.
    Local,
    /// `STB_GLOBAL`, and an upper-case letter other than `W` in kallsyms.
    Global,
    /// `STB_WEAK`, and `W` in kallsyms.
    Weak,
    /// `STB_GNU_UNIQUE` and others.
    Other,
}

/// Type of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// Code: `STT_FUNC`, `STT_GNU_IFUNC`, a letter for text or weak symbols in kallsyms.
    Function,
    /// Data: `STT_OBJECT`, other letters in kallsyms.
    Variable,
    /// A location in code or data without type, as in assembly: `STT_NOTYPE`.
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

/// A list of symbols and groups of symbols, stored in 16 bytes each. Kernels and compilers have hundreds of thousands.
#[derive(Debug, Clone, Default)]
pub(crate) struct PackedSymbols {
    list: Vec<PackedSymbol>,
    /// Sizes too large for [`PackedSymbol::bits`].
    long: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct PackedSymbol {
    start: u64,
    /// From the lowest bit: the size in bytes (26 bits), [`IS_LONG`] (1), type and name form (3), binding (2). If [`IS_LONG`] is
    /// set, the lowest 26 bits are the index of the size in [`PackedSymbols::long`]. If type and name form are [`GROUP`], these
    /// 26 bits are the number of a group.
    bits: u32,
    name: NameAt,
}

/// The bits of [`PackedSymbol::bits`] with the size, the index or the number of a group.
const SIZE_MASK: u32 = (1 << 26) - 1;
const IS_LONG: u32 = 1 << 26;
/// The lowest bit of type and name form.
const KIND_SHIFT: u32 = 27;
/// The bits of type and name form, shifted down.
const KIND_MASK: u32 = 7;
/// The lowest bit of the binding.
const BINDING_SHIFT: u32 = 30;
/// Type and name form of an entry that represents a group of symbols at one address.
const GROUP: u32 = 7;

/// Type and name form for each value of the three bits. Entries of a PLT are functions. The last value is [`GROUP`], so its
/// element only completes the array.
const KINDS: [(SymbolKind, NameForm); 8] = [
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

/// An entry of a list of symbols.
pub(crate) enum SymbolEntry {
    /// A symbol.
    One(Symbol),
    /// The number of a group of symbols at one address.
    Group(u32),
}

impl PackedSymbols {
    /// Creates an empty list with memory for this many symbols.
    pub(crate) fn with_capacity(symbols: usize) -> Self {
        Self {
            list: Vec::with_capacity(symbols),
            long: Vec::new(),
        }
    }

    /// Adds a symbol.
    pub(crate) fn push(&mut self, symbol: &Symbol) {
        // The index in `KINDS`; for PLT entries of any type it is 6.
        let kind = (symbol.kind as u32 + 3 * symbol.form as u32).min(6) << KIND_SHIFT;
        let binding = (symbol.binding as u32) << BINDING_SHIFT;
        let size = self.size_bits(symbol.end.wrapping_sub(symbol.start));
        self.list.push(PackedSymbol {
            start: symbol.start,
            bits: kind | binding | size,
            name: symbol.name,
        });
    }

    /// The size as in [`PackedSymbol::bits`]. A large size is added to `long`.
    fn size_bits(&mut self, size: u64) -> u32 {
        match u32::try_from(size) {
            Ok(size) if size <= SIZE_MASK => size,
            // No file has 64 million symbols of 64 MiB and more.
            _ => {
                let index = self.long.len() as u32 & SIZE_MASK;
                self.long.push(size);
                IS_LONG | index
            }
        }
    }

    fn unpack(&self, packed: &PackedSymbol) -> Symbol {
        let (kind, form) = KINDS[(packed.bits >> KIND_SHIFT & KIND_MASK) as usize];
        Symbol {
            start: packed.start,
            end: self.end_of(packed),
            binding: BINDINGS[(packed.bits >> BINDING_SHIFT & 3) as usize],
            kind,
            form,
            name: packed.name,
        }
    }

    fn end_of(&self, packed: &PackedSymbol) -> u64 {
        let small = packed.bits & SIZE_MASK;
        let size = match packed.bits & IS_LONG {
            0 => small.into(),
            _ => self.long.get(small as usize).copied().unwrap_or_default(),
        };
        packed.start.wrapping_add(size)
    }

    /// Appends the symbol at a position of another list.
    pub(crate) fn push_from(&mut self, other: &Self, position: u32) {
        match other.list.get(position as usize) {
            Some(packed) if packed.bits & IS_LONG == 0 => self.list.push(*packed),
            Some(packed) => self.push(&other.unpack(packed)),
            None => {}
        }
    }

    /// Adds an entry for a group of symbols that start at `start`.
    pub(crate) fn push_group(&mut self, start: u64, group: u32) {
        // No file has 64 million groups.
        self.list.push(PackedSymbol {
            start,
            bits: GROUP << KIND_SHIFT | group & SIZE_MASK,
            name: NameAt::default(),
        });
    }

    /// The entry at a position.
    pub(crate) fn entry(&self, position: u32) -> Option<SymbolEntry> {
        let packed = self.list.get(position as usize)?;
        Some(match packed.bits >> KIND_SHIFT & KIND_MASK {
            GROUP => SymbolEntry::Group(packed.bits & SIZE_MASK),
            _ => SymbolEntry::One(self.unpack(packed)),
        })
    }

    /// The symbol at a position of a list without groups.
    pub(crate) fn get(&self, position: u32) -> Option<Symbol> {
        let packed = self.list.get(position as usize)?;
        Some(self.unpack(packed))
    }

    /// Start and end of the symbol at a position of a list without groups.
    pub(crate) fn extent_at(&self, position: u32) -> Option<(u64, u64)> {
        let packed = self.list.get(position as usize)?;
        Some((packed.start, self.end_of(packed)))
    }

    /// Whether the symbol at a position of a list without groups has no size.
    pub(crate) fn has_no_size(&self, position: u32) -> bool {
        let packed = self.list.get(position as usize);
        packed.is_some_and(|packed| packed.bits & (SIZE_MASK | IS_LONG) == 0)
    }

    /// The starts of all symbols.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> {
        self.list.iter().map(|packed| packed.start)
    }

    /// The positions in `range`, by ascending start of their symbols; positions of equal starts are ascending.
    pub(crate) fn sorted(&self, range: Range<u32>) -> Vec<u32> {
        let list = self.list.get(range.start as usize..range.end as usize);
        let list = list.unwrap_or_default();
        if list.is_sorted_by_key(|symbol| symbol.start) {
            return range.collect();
        }
        let lowest = list.iter().map(|symbol| symbol.start).min();
        let lowest = lowest.unwrap_or_default();
        let distances = || list.iter().map(|symbol| symbol.start - lowest);
        let pairs = || distances().zip(range.clone());
        // Single numbers, each with a distance and a position, are sorted several times as fast as pairs.
        if distances().all(|distance| distance <= u32::MAX.into()) {
            let mut keys: Vec<u64> = pairs()
                .map(|(distance, at)| distance << 32 | u64::from(at))
                .collect();
            keys.sort_unstable();
            return keys.into_iter().map(|key| key as u32).collect();
        }
        let mut keys: Vec<(u64, u32)> = pairs().collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, at)| at).collect()
    }

    /// The start of the symbol at a position.
    pub(crate) fn start(&self, position: u32) -> Option<u64> {
        self.list.get(position as usize).map(|symbol| symbol.start)
    }

    /// Sets the end of the symbol at a position of a list without groups.
    pub(crate) fn set_end(&mut self, position: u32, end: u64) {
        let Some(start) = self.start(position) else {
            return;
        };
        let size = self.size_bits(end.wrapping_sub(start));
        if let Some(packed) = self.list.get_mut(position as usize) {
            packed.bits = packed.bits & !(SIZE_MASK | IS_LONG) | size;
        }
    }

    /// Adds `distance` to all addresses.
    pub(crate) fn shift(&mut self, distance: u64) {
        for symbol in &mut self.list {
            symbol.start = symbol.start.wrapping_add(distance);
        }
    }

    /// The number of symbols that start at or before `address`. The list must be sorted by start.
    pub(crate) fn count_up_to(&self, address: u64) -> usize {
        self.list.partition_point(|symbol| symbol.start <= address)
    }

    /// Frees reserved memory.
    pub(crate) fn shrink(&mut self) {
        self.list.shrink_to_fit();
        self.long.shrink_to_fit();
    }

    /// Iterates over all symbols of a list without groups.
    #[cfg(test)]
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packed_symbols_are_unpacked_unchanged() {
        let mut symbols = PackedSymbols::default();
        let mut expected = Vec::new();
        for ((kind, form), binding) in KINDS.into_iter().zip(BINDINGS.into_iter().cycle()) {
            for size in [
                0,
                1,
                SIZE_MASK.into(),
                u64::from(SIZE_MASK) + 1,
                u64::MAX - 7,
            ] {
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
        assert_eq!(moved, Some((103, 103 + u64::from(SIZE_MASK) + 1)));
    }

    fn symbol(start: u64) -> Symbol {
        Symbol {
            start,
            end: start,
            binding: Binding::Local,
            kind: SymbolKind::Function,
            form: NameForm::Plain,
            name: NameAt::default(),
        }
    }

    proptest! {
        #[test]
        fn positions_are_sorted_as_by_a_stable_sort(
            near in prop::collection::vec(0u64..20, 0..40),
            far in prop::collection::vec(any::<u64>(), 0..4),
            skipped in 0usize..40,
        ) {
            // Distances exceed 32 bits only if there are `far` starts.
            let starts = [near, far].concat();
            let mut symbols = PackedSymbols::default();
            starts.iter().for_each(|start| symbols.push(&symbol(*start)));
            let first = skipped.min(starts.len());
            let mut expected: Vec<u32> = (first as u32..starts.len() as u32).collect();
            expected.sort_by_key(|at| starts[*at as usize]);
            prop_assert_eq!(symbols.sorted(first as u32..starts.len() as u32), expected);
        }
    }

    #[test]
    fn a_group_is_an_entry_with_its_number() {
        let mut symbols = PackedSymbols::with_capacity(2);
        symbols.push(&symbol(7));
        symbols.push_group(9, 5);
        assert!(matches!(symbols.entry(0), Some(SymbolEntry::One(one)) if one == symbol(7)));
        assert!(matches!(symbols.entry(1), Some(SymbolEntry::Group(5))));
        assert!(symbols.entry(2).is_none());
        assert_eq!([8, 9].map(|at| symbols.count_up_to(at)), [1, 2]);
    }
}
