//! A compilation unit, and the units that its entries refer to.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    DebugInfoOffset, DebugTypeSignature, DwTag, Dwarf, Unit, UnitOffset, UnitRef, UnitType,
};
use rperf_symbol::dwarf::{CachedNames, DieScanner, FunctionEntries, Slice, WantedNames};
use rperf_symbol::{DebugInfo, DebugUnit};

use super::die::Die;
use super::lines::{LineTable, has_file};

/// A unit, and the sections that its entries refer to.
#[derive(Debug)]
pub(crate) struct UnitReader<'u> {
    pub(super) dwarf: &'u Dwarf<Slice<'u>>,
    pub(super) unit: Rc<Unit<Slice<'u>>>,
    /// Whether the unit is in the supplementary file, and the unit's offset in `.debug_info`.
    pub(super) key: (bool, usize),
}

/// The unit that is searched.
#[derive(Debug)]
pub(crate) struct CompileUnit<'u> {
    /// The debug information of the object.
    info: &'u DebugInfo,
    /// The searched unit itself.
    pub(super) home: Rc<UnitReader<'u>>,
    /// Sections used by the line table.
    line_dwarf: &'u Dwarf<Slice<'u>>,
    /// The unit with the line table: the searched unit, or for split DWARF its skeleton unit.
    line_unit: Rc<Unit<Slice<'u>>>,
    lines: OnceCell<LineTable<'u>>,
    /// The other units read so far, by their keys.
    others: RefCell<HashMap<(bool, usize), Rc<UnitReader<'u>>>>,
    /// By signature: the offset of a type unit, and of the type within it.
    types: OnceCell<HashMap<DebugTypeSignature, (DebugInfoOffset, UnitOffset)>>,
    /// Cached results of the name filter by which the unit was found, for the strings of this unit; `None` if, for example, the
    /// unit was found by an address.
    pub(super) cached_names: Option<&'u CachedNames>,
}

impl<'u> CompileUnit<'u> {
    pub(crate) fn new(unit: DebugUnit<'u>) -> Self {
        let is_supplementary = false;
        let key = (is_supplementary, offset_of(&unit.unit));
        Self {
            info: unit.info,
            line_dwarf: unit.line_dwarf,
            line_unit: unit.line_unit,
            home: Rc::new(UnitReader {
                dwarf: unit.dwarf,
                unit: unit.unit,
                key,
            }),
            lines: OnceCell::new(),
            others: RefCell::default(),
            types: OnceCell::new(),
            cached_names: unit.cached_names,
        }
    }

    /// Whether a function may have the address 0. In linked files, that is the address of functions that the linker dropped.
    pub(super) fn may_begin_at_zero(&self) -> bool {
        self.info.is_relocatable()
    }

    /// Returns the line table.
    pub(crate) fn lines(&self) -> &LineTable<'u> {
        let read = || LineTable::read(UnitRef::new(self.line_dwarf, &self.line_unit));
        self.lines.get_or_init(read)
    }

    /// Whether a file of the unit has the file name `name` and a path that passes `is_wanted`.
    pub(crate) fn has_file(&self, name: &str, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        has_file(
            UnitRef::new(self.line_dwarf, &self.line_unit),
            name,
            is_wanted,
        )
    }

    /// Returns the entry of the unit itself.
    pub(crate) fn root(&self) -> Option<Die<'_, 'u>> {
        self.at(self.home.unit.header.root_offset())
    }

    /// Returns a scanner of the entries whose tags pass `is_wanted`; `None` if the unit is damaged.
    pub(crate) fn scanner(&self, is_wanted: &dyn Fn(DwTag) -> bool) -> Option<DieScanner<'u, 'u>> {
        DieScanner::new(self.home.dwarf, &self.home.unit.header, is_wanted)
    }

    /// Returns two lists of offsets: the functions that have code, and those with a wanted name, with or without code (empty if
    /// `wanted` is `None`).
    pub(super) fn function_entries(&self, wanted: Option<WantedNames<'_>>) -> FunctionEntries {
        FunctionEntries::read(self.home.dwarf, &self.home.unit.header, wanted)
    }

    /// Returns the entry at this offset of the unit.
    pub(crate) fn at(&self, offset: UnitOffset) -> Option<Die<'_, 'u>> {
        Die::read(self, &self.home, offset)
    }

    /// Whether an entry of the unit has a location list: only optimised code has them.
    pub(crate) fn is_optimised(&self) -> bool {
        let from_root = None;
        let Ok(mut entries) = self.home.unit.entries_raw(from_root) else {
            return false;
        };
        // Before DWARF 4, a location list is referred to by a form for constants, which a single location never has.
        let is_before_4 = self.home.unit.header.version() < 4;
        let mut has_list = false;
        while !has_list && !entries.is_empty() {
            let Ok(abbreviation) = entries.read_abbreviation() else {
                break;
            };
            let Some(abbreviation) = abbreviation else {
                continue;
            };
            has_list = abbreviation.attributes().iter().any(|attribute| {
                attribute.name() == gimli::DW_AT_location
                    && match attribute.form() {
                        gimli::DW_FORM_sec_offset | gimli::DW_FORM_loclistx => true,
                        gimli::DW_FORM_data4 | gimli::DW_FORM_data8 => is_before_4,
                        _ => false,
                    }
            });
            if entries.skip_attributes(abbreviation.attributes()).is_err() {
                break;
            }
        }
        has_list
    }

    /// Returns the entry at `offset` of `.debug_info`, in the supplementary file if `is_supplementary`.
    pub(super) fn at_debug_info_offset(
        &self,
        offset: DebugInfoOffset,
        is_supplementary: bool,
    ) -> Option<Die<'_, 'u>> {
        let dwarf = match is_supplementary {
            true => self.home.dwarf.sup()?,
            false => self.home.dwarf,
        };
        let at = match (is_supplementary, self.home.unit.dwo_id) {
            (false, None) => self.info.unit_containing(offset)?,
            // `unit_containing` is only for the main file. The supplementary file has no index; a split file needs none, since
            // it has a single compilation unit.
            _ => containing(dwarf, offset)?,
        };
        let reader = self.unit_at(dwarf, is_supplementary, at.0)?;
        let entry = offset.to_unit_offset(&reader.unit.header)?;
        Die::read(self, &reader, entry)
    }

    /// Returns the unit at `offset` in the `.debug_info` of `dwarf`, cached.
    fn unit_at(
        &self,
        dwarf: &'u Dwarf<Slice<'u>>,
        is_supplementary: bool,
        offset: usize,
    ) -> Option<Rc<UnitReader<'u>>> {
        let key = (is_supplementary, offset);
        if key == self.home.key {
            return Some(Rc::clone(&self.home));
        }
        let cached = self.others.borrow().get(&key).cloned();
        if cached.is_some() {
            return cached;
        }
        let header = dwarf.unit_header(DebugInfoOffset(offset)).ok()?;
        let unit = Rc::new(dwarf.unit(header).ok()?);
        let reader = Rc::new(UnitReader { dwarf, unit, key });
        self.others.borrow_mut().insert(key, Rc::clone(&reader));
        Some(reader)
    }

    /// Returns the type of this signature, in a type unit of `.debug_info` (`-fdebug-types-section` with DWARF 5; the
    /// `.debug_types` of DWARF 4 is not read).
    pub(super) fn type_with_signature(&self, signature: DebugTypeSignature) -> Option<Die<'_, 'u>> {
        let dwarf = self.home.dwarf;
        let types = self.types.get_or_init(|| type_units(dwarf));
        let (at, entry) = *types.get(&signature)?;
        let is_supplementary = false;
        let reader = self.unit_at(dwarf, is_supplementary, at.0)?;
        Die::read(self, &reader, entry)
    }
}

/// Returns the offsets of the type units in `.debug_info`, and of the types within them, by signature.
fn type_units(
    dwarf: &Dwarf<Slice<'_>>,
) -> HashMap<DebugTypeSignature, (DebugInfoOffset, UnitOffset)> {
    let mut found = HashMap::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let (UnitType::Type {
            type_signature,
            type_offset,
        }
        | UnitType::SplitType {
            type_signature,
            type_offset,
        }) = header.type_()
        else {
            continue;
        };
        if let Some(at) = header.debug_info_offset() {
            found.insert(type_signature, (at, type_offset));
        }
    }
    found
}

fn offset_of(unit: &Unit<Slice<'_>>) -> usize {
    let offset = unit.header.debug_info_offset();
    offset.map_or(0, |offset| offset.0)
}

/// Returns the offset of the unit that contains the entry at `offset`, searched sequentially.
fn containing(dwarf: &Dwarf<Slice<'_>>, offset: DebugInfoOffset) -> Option<DebugInfoOffset> {
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        let start = header.debug_info_offset()?;
        if offset.0 < start.0.saturating_add(header.length_including_self()) {
            return Some(start);
        }
    }
    None
}
