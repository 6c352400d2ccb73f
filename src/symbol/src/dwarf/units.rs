//! The units of one object at hand: gimli's view of its files, and what is kept between looks at the same unit.

use std::sync::{Arc, PoisonError, RwLock};

use gimli::{
    Abbreviations, AttributeValue, DebugInfoOffset, DebugStrOffsetsBase, Dwarf, EntriesRaw, Unit,
    UnitHeader, UnitOffset,
};
use rustc_hash::FxHashMap;

use super::index::{Index, UnitNumber};
use super::name::Home;
use super::sections::{DebugFile, Slice};

/// How many units' [`Basics`] are kept.
const KEPT_BASICS: usize = 1024;

/// What it takes to read entries of a unit, besides its header.
#[derive(Debug, Clone)]
pub(super) struct Basics {
    abbreviations: Arc<Abbreviations>,
    str_offsets_base: DebugStrOffsetsBase,
}

impl Basics {
    pub(super) fn of(unit: &Unit<Slice<'_>>) -> Self {
        Self {
            abbreviations: unit.abbreviations.clone(),
            str_offsets_base: unit.str_offsets_base,
        }
    }
}

/// A unit of which single entries are read. Made in no time, where a [`Unit`] parses the head of its line table.
pub(super) struct Entries<'a> {
    pub(super) header: UnitHeader<Slice<'a>>,
    basics: Basics,
}

impl<'a> Entries<'a> {
    /// The unit at `offset` of `.debug_info`.
    pub(super) fn at(dwarf: &Dwarf<Slice<'a>>, offset: usize, basics: Basics) -> Option<Self> {
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset));
        Some(Self {
            header: header.ok()?,
            basics,
        })
    }

    /// The entries from `entry` on.
    pub(super) fn from(&self, entry: UnitOffset) -> gimli::Result<EntriesRaw<'_, Slice<'a>>> {
        self.header
            .entries_raw(&self.basics.abbreviations, Some(entry))
    }

    /// The text that an attribute refers to.
    pub(super) fn text(
        &self,
        dwarf: &Dwarf<Slice<'a>>,
        value: AttributeValue<Slice<'a>>,
    ) -> Option<Slice<'a>> {
        let text = match value {
            AttributeValue::String(text) => Ok(text),
            AttributeValue::DebugStrRef(offset) => dwarf.string(offset),
            AttributeValue::DebugStrRefSup(offset) => dwarf.sup_string(offset),
            AttributeValue::DebugLineStrRef(offset) => dwarf.line_string(offset),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let format = self.header.format();
                let base = self.basics.str_offsets_base;
                let offset = dwarf.debug_str_offsets.get_str_offset(format, base, index);
                offset.and_then(|offset| dwarf.string(offset))
            }
            _ => return None,
        };
        text.ok()
    }
}

/// An object with debug information, and the files that belong to it.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) main: DebugFile,
    pub(super) index: Index,
    alternate: Option<(DebugFile, Index)>,
    /// `OBJECT.dwp`: the `.dwo` files in one.
    pub(super) package: Option<DebugFile>,
    /// By home and offset in `.debug_info`.
    basics: RwLock<FxHashMap<(Home, usize), Basics>>,
}

impl Object {
    /// Indexes `main`. With it comes what is wrong with its units, if anything is.
    pub(super) fn new(
        main: DebugFile,
        alternate: Option<DebugFile>,
        package: Option<DebugFile>,
    ) -> (Self, Option<gimli::Error>) {
        let (index, damage) = Index::build(&main.dwarf(alternate.as_ref()));
        let alternate = alternate.map(|file| {
            let (index, _) = Index::build(&file.dwarf(None));
            (file, index)
        });
        let object = Self {
            main,
            index,
            alternate,
            package,
            basics: RwLock::default(),
        };
        (object, damage)
    }

    fn alternate(&self) -> Option<&DebugFile> {
        self.alternate.as_ref().map(|(file, _)| file)
    }

    /// Bytes of memory that stay taken as long as the object does.
    pub(super) fn size(&self) -> usize {
        let package = self.package.as_ref();
        let files = [Some(&self.main), self.alternate(), package];
        files
            .into_iter()
            .flatten()
            .map(DebugFile::unpacked_len)
            .sum()
    }
}

/// An object's units with what gimli needs to read them.
pub(super) struct Units<'o, 'a> {
    object: &'o Object,
    pub(super) main: Dwarf<Slice<'a>>,
    /// That of the split unit at hand.
    pub(super) split: Option<Dwarf<Slice<'a>>>,
}

impl<'a> Units<'a, 'a> {
    /// The units of `object`.
    pub(super) fn new(object: &'a Object) -> Self {
        Self {
            object,
            main: object.main.dwarf(object.alternate()),
            split: None,
        }
    }
}

impl<'a> Units<'_, 'a> {
    /// The sections of `home`.
    pub(super) fn dwarf(&self, home: Home) -> Option<&Dwarf<Slice<'a>>> {
        match home {
            Home::Main => Some(&self.main),
            Home::Alternate => self.main.sup(),
            Home::Split => self.split.as_ref(),
        }
    }

    /// The header of the unit with this number in the object itself.
    pub(super) fn header(&self, number: UnitNumber) -> Option<UnitHeader<Slice<'a>>> {
        let offset = DebugInfoOffset(self.object.index.offset(number)?);
        self.main.debug_info.header_from_offset(offset).ok()
    }

    /// That unit.
    pub(super) fn numbered(&self, number: UnitNumber) -> Option<Unit<Slice<'a>>> {
        self.main.unit(self.header(number)?).ok()
    }

    /// The same, for its entries alone.
    pub(super) fn entries(&self, number: UnitNumber) -> Option<Entries<'a>> {
        let offset = self.object.index.offset(number)?;
        self.entries_at(Home::Main, offset)
    }

    /// The unit that the entry at `offset` belongs to.
    pub(super) fn containing(&self, home: Home, offset: usize) -> Option<Entries<'a>> {
        let index = match home {
            Home::Main => &self.object.index,
            Home::Alternate => &self.object.alternate.as_ref()?.1,
            Home::Split => return None,
        };
        self.entries_at(home, index.offset(index.containing(offset)?)?)
    }

    fn entries_at(&self, home: Home, offset: usize) -> Option<Entries<'a>> {
        let kept = self
            .object
            .basics
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let known = kept.get(&(home, offset)).cloned();
        drop(kept);
        let basics = match known {
            Some(basics) => basics,
            None => self.basics(home, offset)?,
        };
        Entries::at(self.dwarf(home)?, offset, basics)
    }

    fn basics(&self, home: Home, offset: usize) -> Option<Basics> {
        let basics = Basics::of(&self.at(home, offset)?);
        let mut kept = self
            .object
            .basics
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_BASICS {
            kept.clear();
        }
        kept.insert((home, offset), basics.clone());
        Some(basics)
    }

    fn at(&self, home: Home, offset: usize) -> Option<Unit<Slice<'a>>> {
        let dwarf = self.dwarf(home)?;
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset));
        dwarf.unit(header.ok()?).ok()
    }
}
