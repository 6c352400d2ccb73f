//! The units of one object: gimli's view of its files, and cached data about units.

use std::sync::{Arc, PoisonError, RwLock};

use gimli::{
    Abbreviations, AttributeValue, DebugInfoOffset, DebugStrOffset, DebugStrOffsetsBase,
    DebugStrOffsetsIndex, Dwarf, EntriesRaw, Format, Reader as _, Section as _, Unit, UnitHeader,
    UnitOffset,
};
use rustc_hash::FxHashMap;

use super::index::{UnitIndex, UnitNumber};
use super::name::DwarfFile;
use super::sections::{DebugFile, Slice};

/// Maximum number of cached [`UnitBasics`].
const MAX_CACHED_BASICS: usize = 1024;

/// Data required to read entries of a unit, besides its header.
#[derive(Debug, Clone)]
pub(super) struct UnitBasics {
    abbreviations: Arc<Abbreviations>,
    str_offsets_base: DebugStrOffsetsBase,
}

impl UnitBasics {
    pub(super) fn of(unit: &Unit<Slice<'_>>) -> Self {
        Self {
            abbreviations: unit.abbreviations.clone(),
            str_offsets_base: unit.str_offsets_base,
        }
    }
}

/// A unit for reading single entries. Cheap to create, whereas a [`Unit`] parses the header of its
/// line table.
pub(super) struct UnitEntries<'a> {
    pub(super) header: UnitHeader<Slice<'a>>,
    basics: UnitBasics,
}

impl<'a> UnitEntries<'a> {
    /// The unit at `offset` of `.debug_info`.
    pub(super) fn at(dwarf: &Dwarf<Slice<'a>>, offset: usize, basics: UnitBasics) -> Option<Self> {
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

    /// The string that an attribute contains or refers to; `None` if it has another kind of value, or is damaged.
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
                dwarf.string(str_offset(dwarf, format, base, index)?)
            }
            _ => return None,
        };
        text.ok()
    }
}

/// Returns an entry of `.debug_str_offsets`; `None` if the section ends before it. The index is first compared with the number of
/// bytes because gimli's multiplication would overflow for a huge index of a damaged file; gimli itself checks the exact end.
pub(super) fn str_offset(
    dwarf: &Dwarf<Slice<'_>>,
    format: Format,
    base: DebugStrOffsetsBase,
    index: DebugStrOffsetsIndex,
) -> Option<DebugStrOffset> {
    let section = &dwarf.debug_str_offsets;
    let is_possible = index.0 < section.reader().len();
    is_possible.then(|| section.get_str_offset(format, base, index).ok())?
}

/// An object with debug information, and its related files.
#[derive(Debug)]
pub(super) struct DebugObject {
    pub(super) main: DebugFile,
    pub(super) index: UnitIndex,
    /// The file named by `.gnu_debugaltlink`, and its units.
    alternate: Option<(DebugFile, UnitIndex)>,
    /// `OBJECT.dwp`: a package of `.dwo` files.
    pub(super) package: Option<DebugFile>,
    /// Cached data by file and by the unit's offset in `.debug_info`. Not of split units: [`DwarfFile::Split`] does not tell
    /// `.dwo` files apart.
    basics: RwLock<FxHashMap<(DwarfFile, usize), UnitBasics>>,
}

impl DebugObject {
    /// Indexes the units of `main` and `alternate`. Also returns a problem with the units of `main`, if any.
    pub(super) fn new(
        main: DebugFile,
        alternate: Option<DebugFile>,
        package: Option<DebugFile>,
    ) -> (Self, Option<gimli::Error>) {
        let (index, damage) = UnitIndex::build(&main.dwarf(alternate.as_ref()));
        let alternate = alternate.map(|file| {
            let no_alternate = None;
            let (index, _) = UnitIndex::build(&file.dwarf(no_alternate));
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

    /// Memory used by decompressed or relocated sections of all files, in bytes.
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

/// An object's units with gimli's view of the sections.
pub(super) struct Units<'o, 'a> {
    object: &'o DebugObject,
    pub(super) main: Dwarf<Slice<'a>>,
    /// The sections, of a `.dwo` file or of the package, that contain the split unit opened last; `None` before the first.
    pub(super) split: Option<Dwarf<Slice<'a>>>,
}

impl<'a> Units<'a, 'a> {
    /// The units of `object`.
    pub(super) fn new(object: &'a DebugObject) -> Self {
        Self {
            object,
            main: object.main.dwarf(object.alternate()),
            split: None,
        }
    }
}

impl<'a> Units<'_, 'a> {
    /// The sections of `file`; `None` if there is no such file.
    pub(super) fn dwarf(&self, file: DwarfFile) -> Option<&Dwarf<Slice<'a>>> {
        match file {
            DwarfFile::Main => Some(&self.main),
            DwarfFile::Alternate => self.main.sup(),
            DwarfFile::Split => self.split.as_ref(),
        }
    }

    /// The header of the unit with this number in the object itself.
    pub(super) fn header(&self, number: UnitNumber) -> Option<UnitHeader<Slice<'a>>> {
        let offset = DebugInfoOffset(self.object.index.offset(number)?);
        self.main.debug_info.header_from_offset(offset).ok()
    }

    /// The unit with this number.
    pub(super) fn numbered(&self, number: UnitNumber) -> Option<Unit<Slice<'a>>> {
        self.main.unit(self.header(number)?).ok()
    }

    /// Like `numbered`, for reading entries only.
    pub(super) fn entries(&self, number: UnitNumber) -> Option<UnitEntries<'a>> {
        let offset = self.object.index.offset(number)?;
        self.entries_at(DwarfFile::Main, offset)
    }

    /// The unit that contains the entry at `offset`; `None` for split units, which are not indexed.
    pub(super) fn containing(&self, file: DwarfFile, offset: usize) -> Option<UnitEntries<'a>> {
        let index = match file {
            DwarfFile::Main => &self.object.index,
            DwarfFile::Alternate => &self.object.alternate.as_ref()?.1,
            DwarfFile::Split => return None,
        };
        self.entries_at(file, index.offset(index.containing(offset)?)?)
    }

    fn entries_at(&self, file: DwarfFile, offset: usize) -> Option<UnitEntries<'a>> {
        let cache = self
            .object
            .basics
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let known = cache.get(&(file, offset)).cloned();
        drop(cache);
        let basics = match known {
            Some(basics) => basics,
            None => self.basics(file, offset)?,
        };
        UnitEntries::at(self.dwarf(file)?, offset, basics)
    }

    /// Reads and caches the basics of the unit at `offset`.
    fn basics(&self, file: DwarfFile, offset: usize) -> Option<UnitBasics> {
        let basics = UnitBasics::of(&self.at(file, offset)?);
        let mut cache = self
            .object
            .basics
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_BASICS {
            cache.clear();
        }
        cache.insert((file, offset), basics.clone());
        Some(basics)
    }

    fn at(&self, file: DwarfFile, offset: usize) -> Option<Unit<Slice<'a>>> {
        let dwarf = self.dwarf(file)?;
        let header = dwarf.debug_info.header_from_offset(DebugInfoOffset(offset));
        dwarf.unit(header.ok()?).ok()
    }
}
