//! A sorted table of symbols and the lookup of an address in it.

use std::borrow::Cow;

use crate::demangle::demangle;
use crate::overlaps::Overlaps;

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

/// A named range of addresses. Its name is in the table: [`SymbolTable::name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol {
    /// First address.
    pub start: u64,
    /// First address after it. Equal to `start` for a symbol without size, which then stands for
    /// that one address.
    pub end: u64,
    /// Who sees it.
    pub binding: Binding,
    /// Whether it is code (`STT_FUNC`, `STT_GNU_IFUNC`, a text letter in kallsyms).
    pub is_function: bool,
    pub(crate) form: NameForm,
    pub(crate) name: NameRange,
}

/// A name's place in its table's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NameRange {
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

/// All names of one object, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(String);

impl Names {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// Keeps `name`; what isn't UTF-8 in it is replaced. `None` once the text is full (4 GiB).
    pub(crate) fn push(&mut self, name: &[u8]) -> Option<NameRange> {
        let offset = u32::try_from(self.0.len()).ok()?;
        match std::str::from_utf8(name) {
            Ok(text) => self.0.push_str(text),
            Err(_) => self.0.push_str(&String::from_utf8_lossy(name)),
        }
        let len = u32::try_from(self.0.len()).ok()? - offset;
        Some(NameRange { offset, len })
    }

    pub(crate) fn get(&self, range: NameRange) -> &str {
        let start = range.offset as usize;
        self.0
            .get(start..start + range.len as usize)
            .unwrap_or_default()
    }
}

/// Symbols of one object, sorted by start.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) names: Names,
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
            symbols: Vec::new(),
            names: Names::default(),
            overlaps: None,
            is_numbered: false,
            space,
            demangle: false,
        }
    }

    /// Symbols in an order that means something else than their addresses, by which they aren't found.
    pub(crate) fn numbered(symbols: Vec<Symbol>, names: Names) -> Self {
        Self {
            symbols,
            names,
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
        let after = self.symbols.partition_point(|s| s.start <= address);
        let position = after.checked_sub(1)?;
        let symbol = self.symbols.get(position)?;
        let inside = address < symbol.end || address == symbol.start;
        inside.then_some(SymbolIndex(u32::try_from(position).ok()?))
    }

    /// The symbol at `index`.
    ///
    /// # Panics
    ///
    /// Where `index` is of another, longer table.
    pub fn get(&self, index: SymbolIndex) -> &Symbol {
        &self.symbols[index.as_usize()]
    }

    /// The name as perf shows it: demangled, with `@plt` for an entry of the procedure linkage table.
    /// Demangling happens here and costs some microseconds: keep what you show often.
    pub fn name(&self, index: SymbolIndex) -> Cow<'_, str> {
        self.name_of(self.get(index))
    }

    /// The name as the object file has it, without `@plt`.
    pub fn raw_name(&self, index: SymbolIndex) -> &str {
        self.names.get(self.get(index).name)
    }

    /// Position and symbol, by rising start.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = (SymbolIndex, &Symbol)> + ExactSizeIterator {
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

    fn name_of(&self, symbol: &Symbol) -> Cow<'_, str> {
        shown_name(self.names.get(symbol.name), symbol.form, self.demangle)
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
