//! A sorted table of symbols and the lookup of an address in it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::demangle::{beginning, demangle};
use crate::names::Names;
use crate::overlaps::Overlaps;
use crate::symbol::{NameForm, Symbol, Symbols};

/// What an address of a table means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressSpace {
    /// Offsets in the object's file: `ip - map.start + map.pgoff`.
    FileOffset,
    /// Addresses as sampled.
    Runtime,
}

/// Position of a symbol in its [`SymbolTable`]; positions grow with addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolIndex(u32);

impl SymbolIndex {
    /// The position `number`. Positions behind the end of a table can stand for what its user adds to it.
    pub fn new(number: usize) -> Option<Self> {
        u32::try_from(number).ok().map(Self)
    }

    /// The position as a number below [`SymbolTable::len`].
    pub fn as_usize(self) -> usize {
        self.0 as usize
    }
}

/// Symbols of one object, sorted by start.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    pub(crate) symbols: Symbols,
    /// Tables that come from one listing share them.
    pub(crate) names: Arc<Names>,
    /// Where symbols overlap, the answer depends on the order of search.
    pub(crate) overlaps: Option<Overlaps>,
    /// Whether symbols are in no order and found by their positions alone.
    pub(crate) is_numbered: bool,
    pub(crate) space: AddressSpace,
    pub(crate) demangle: bool,
}

impl SymbolTable {
    /// A table without symbols.
    pub fn empty(space: AddressSpace) -> Self {
        Self {
            symbols: Symbols::default(),
            names: Arc::default(),
            overlaps: None,
            is_numbered: false,
            space,
            demangle: false,
        }
    }

    /// Symbols in an order that means something else than their addresses, by which they aren't found.
    pub(crate) fn numbered(symbols: Symbols, names: Names) -> Self {
        Self {
            symbols,
            names: Arc::new(names),
            is_numbered: true,
            ..Self::empty(AddressSpace::Runtime)
        }
    }

    /// What the addresses of this table mean.
    pub fn address_space(&self) -> AddressSpace {
        self.space
    }

    /// The symbol that covers `address`, of overlapping ones the one that Linux perf finds.
    pub fn find(&self, address: u64) -> Option<SymbolIndex> {
        if let Some(tree) = self.overlaps.as_ref().and_then(|zones| zones.at(address)) {
            return tree.find(&self.symbols, address).map(SymbolIndex);
        }
        if self.is_numbered {
            return None;
        }
        let last = self.symbols.up_to(address).checked_sub(1)?;
        let position = u32::try_from(last).ok()?;
        let symbol = self.symbols.get(position)?;
        let inside = address < symbol.end || address == symbol.start;
        inside.then_some(SymbolIndex(position))
    }

    /// The symbol at `index`; `None` where that is of another, longer table.
    pub fn get(&self, index: SymbolIndex) -> Option<Symbol> {
        self.symbols.get(index.0)
    }

    /// The start of the first symbol and the end of the last.
    pub fn bounds(&self) -> Option<(u64, u64)> {
        let last = u32::try_from(self.symbols.len().checked_sub(1)?).ok()?;
        Some((self.symbols.start(0)?, self.symbols.get(last)?.end))
    }

    /// The name as perf shows it: demangled, with `@plt` for an entry of the procedure linkage table; nothing for an index
    /// of another table. Demangling happens here and costs some microseconds: keep what you show often.
    pub fn name(&self, index: SymbolIndex) -> Cow<'_, str> {
        let symbol = self.get(index);
        symbol.map_or(Cow::Borrowed(""), |symbol| {
            shown_name(self.names.get(symbol.name), symbol.form, self.demangle)
        })
    }

    /// What [`name`](Self::name) begins with, told without demangling: one of the two.
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

    /// The name as perf shows it, where that is how the object has it for sure.
    pub fn plain_name(&self, index: SymbolIndex) -> Option<&str> {
        let symbol = self.get(index)?;
        (symbol.form == NameForm::Plain).then(|| self.names.get(symbol.name))
    }

    /// The name as the object file has it, without `@plt`.
    pub fn raw_name(&self, index: SymbolIndex) -> &str {
        let symbol = self.get(index);
        symbol.map_or("", |symbol| self.names.get(symbol.name))
    }

    /// Position and symbol, by rising start.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (SymbolIndex, Symbol)> + ExactSizeIterator {
        self.symbols.iter().enumerate().map(|(position, symbol)| {
            // The builder refuses more than u32::MAX symbols.
            (SymbolIndex(position as u32), symbol)
        })
    }

    /// The number of symbols.
    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }
}

/// `raw` as it is shown.
pub(crate) fn shown_name(raw: &str, form: NameForm, demangled: bool) -> Cow<'_, str> {
    let name = match form {
        NameForm::Plain => return Cow::Borrowed(raw),
        NameForm::Mangled | NameForm::PltTarget if demangled => demangle(raw),
        NameForm::Mangled | NameForm::PltTarget => None,
    };
    let name = name.map_or(Cow::Borrowed(raw), Cow::Owned);
    match form {
        NameForm::PltTarget => Cow::Owned(format!("{name}@plt")),
        _ => name,
    }
}
