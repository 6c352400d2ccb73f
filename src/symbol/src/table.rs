//! A sorted symbol table and address lookup.

use std::borrow::Cow;
use std::sync::Arc;

use crate::demangle::{beginning, demangle};
use crate::names::NameTable;
use crate::overlaps::OverlappingRanges;
use crate::symbol::{NameForm, PackedSymbols, Symbol, SymbolEntry};
use crate::ties::{ComparedNames, TiedSymbols};

/// Meaning of the addresses in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// Offsets in the object's file: `ip - map.start + map.pgoff`.
    FileOffset,
    /// Addresses at run time, as sampled.
    Runtime,
}

/// Position of a symbol in its [`SymbolTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolIndex(u32);

impl SymbolIndex {
    /// Creates the position `number`; `None` if it has more than 32 bits. Positions beyond a table can identify symbols that
    /// the caller adds.
    pub fn new(number: usize) -> Option<Self> {
        u32::try_from(number).ok().map(Self)
    }

    /// The position as a number; below [`SymbolTable::len`] for a symbol of the table.
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// Symbols of one object, sorted by start unless they can only be found by position.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    pub(crate) symbols: PackedSymbols,
    /// Groups of symbols with the same address. An entry of `symbols` may refer to a group.
    pub(crate) tied: TiedSymbols,
    /// Shared by the tables of the kernel and its modules from one kallsyms listing.
    pub(crate) names: Arc<NameTable>,
    /// The ranges of overlapping symbols, if any, in which look-ups must search like Linux perf.
    pub(crate) overlaps: Option<OverlappingRanges>,
    /// Whether symbols are unordered and only found by position.
    pub(crate) is_numbered: bool,
    /// The address space of the symbols: what their addresses mean.
    pub(crate) space: AddressKind,
    pub(crate) demangle: bool,
}

impl SymbolTable {
    /// Creates a table without symbols.
    pub fn empty(space: AddressKind) -> Self {
        Self {
            symbols: PackedSymbols::default(),
            tied: TiedSymbols::default(),
            names: Arc::default(),
            overlaps: None,
            is_numbered: false,
            space,
            demangle: false,
        }
    }

    /// Creates a table whose order isn't by address: symbols can only be found by position.
    pub(crate) fn numbered(symbols: PackedSymbols, names: NameTable) -> Self {
        Self {
            symbols,
            names: Arc::new(names),
            is_numbered: true,
            ..Self::empty(AddressKind::Runtime)
        }
    }

    /// The meaning of this table's addresses.
    pub fn address_space(&self) -> AddressKind {
        self.space
    }

    /// The symbol that covers `address`; of several, the one that Linux perf finds. `None` if there is none, or if symbols can
    /// only be found by position.
    pub fn find(&self, address: u64) -> Option<SymbolIndex> {
        if let Some(overlaps) = &self.overlaps
            && overlaps.covers(address)
        {
            let tree = overlaps.tree(&self.tied, self.compared_names());
            return tree.find(|at| self.at(at), address).map(SymbolIndex);
        }
        if self.is_numbered {
            return None;
        }
        let last = self.symbols.count_up_to(address).checked_sub(1)?;
        let position = u32::try_from(last).ok()?;
        let symbol = self.at(position)?;
        // As in Linux perf, a symbol of size 0 covers its start.
        let inside = address < symbol.end || address == symbol.start;
        inside.then_some(SymbolIndex(position))
    }

    /// The symbol at `index`; `None` if `index` is beyond the table.
    pub fn get(&self, index: SymbolIndex) -> Option<Symbol> {
        self.at(index.0)
    }

    /// The symbol at a position; of a group, the one that Linux perf keeps.
    pub(crate) fn at(&self, position: u32) -> Option<Symbol> {
        match self.symbols.entry(position)? {
            SymbolEntry::One(symbol) => Some(symbol),
            SymbolEntry::Group(group) => self.tied.kept(group, self.compared_names()),
        }
    }

    pub(crate) fn compared_names(&self) -> ComparedNames<'_> {
        ComparedNames {
            names: &self.names,
            demangle: self.demangle,
        }
    }

    /// The start of the first symbol and the end of the last one; `None` for an empty table.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let last = u32::try_from(self.symbols.len().checked_sub(1)?).ok()?;
        Some((self.symbols.start(0)?, self.at(last)?.end))
    }

    /// The name as displayed by perf: demangled if enabled, with `@plt` for entries of the procedure linkage table; empty if
    /// `index` is beyond the table. Demangling takes some microseconds: cache names that are displayed often.
    pub fn name(&self, index: SymbolIndex) -> Cow<'_, str> {
        let symbol = self.get(index);
        symbol.map_or(Cow::Borrowed(""), |symbol| {
            shown_name(self.names.get(symbol.name), symbol.form, self.demangle)
        })
    }

    /// Returns two texts. The displayed [`name`](Self::name) starts with at least one of them, so most names can be ruled out
    /// without demangling.
    pub fn name_beginnings(&self, index: SymbolIndex) -> [&str; 2] {
        let Some(symbol) = self.get(index) else {
            return [""; 2];
        };
        let raw = self.names.get(symbol.name);
        match symbol.form {
            NameForm::Mangled | NameForm::PltTarget if self.demangle => [beginning(raw), raw],
            _ => [raw; 2],
        }
    }

    /// The name if it is always displayed unchanged, neither demangled nor with `@plt`; otherwise `None`.
    pub fn plain_name(&self, index: SymbolIndex) -> Option<&str> {
        let symbol = self.get(index)?;
        (symbol.form == NameForm::Plain).then(|| self.names.get(symbol.name))
    }

    /// The name in the object file: not demangled, and without `@plt`. Empty if `index` is beyond the table.
    pub fn raw_name(&self, index: SymbolIndex) -> &str {
        let symbol = self.get(index);
        symbol.map_or("", |symbol| self.names.get(symbol.name))
    }

    /// Positions and symbols, in the order of the table.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (SymbolIndex, Symbol)> {
        // No table has more than u32::MAX symbols.
        let positions = 0..self.symbols.len() as u32;
        positions.filter_map(|position| Some((SymbolIndex(position), self.at(position)?)))
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }
}

/// Converts `raw` to the displayed name; `demangles` enables demangling.
pub(crate) fn shown_name(raw: &str, form: NameForm, demangles: bool) -> Cow<'_, str> {
    let name = match form {
        NameForm::Plain => return Cow::Borrowed(raw),
        NameForm::Mangled | NameForm::PltTarget if demangles => demangle(raw),
        NameForm::Mangled | NameForm::PltTarget => None,
    };
    let name = name.map_or(Cow::Borrowed(raw), Cow::Owned);
    match form {
        NameForm::PltTarget => Cow::Owned(format!("{name}@plt")),
        _ => name,
    }
}
