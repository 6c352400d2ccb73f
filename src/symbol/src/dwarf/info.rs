//! Access to the raw debug information of an object, for users that need more than functions and
//! lines.

use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use gimli::{DebugInfoOffset, Dwarf, Unit};

use super::LookupFindings;
use super::function_entries::CachedNames;
use super::index::UnitNumber;
use super::open::find_object;
use super::sections::{SectionSet, Slice};
use super::source::DebugSource;
use super::split::SplitEntries;
use super::unit_prefilter::UnitPrefilter;
use super::units::{DebugObject, Units};
use crate::files::Files;
use crate::request::SearchPaths;

/// An object's debug information, located, decompressed and relocated like in
/// [`LineIndex`](super::LineIndex).
#[derive(Debug)]
pub struct DebugInfo {
    pub(super) object: DebugObject,
    /// Whether an address was looked up before.
    was_searched: AtomicBool,
}

/// A compilation unit, with entries in the object's file or in a `.dwo` file.
#[derive(Debug, Clone)]
pub struct DebugUnit<'u> {
    /// The debug information of the object.
    pub info: &'u DebugInfo,
    /// The sections that entries refer to.
    pub dwarf: &'u Dwarf<Slice<'u>>,
    /// The entries.
    pub unit: Rc<Unit<Slice<'u>>>,
    /// The sections that the line table refers to.
    pub line_dwarf: &'u Dwarf<Slice<'u>>,
    /// The unit with the line table: the same, or the skeleton unit of split DWARF.
    pub line_unit: Rc<Unit<Slice<'u>>>,
    /// A cache of whether the unit's strings match [`UnitPrefilter::function`].
    pub cached_names: Option<&'u CachedNames>,
}

impl DebugInfo {
    /// Opens the debug information of a loaded object. `None` if none of its files has any.
    pub fn open(files: &dyn Files, paths: &SearchPaths, source: &DebugSource) -> Option<Self> {
        let mut findings = LookupFindings::default();
        // Users also read the locations and types of variables.
        let section_set = SectionSet::MainWithValues;
        let object = find_object(files, paths, source, section_set, &mut findings)?;
        Some(Self {
            object,
            was_searched: AtomicBool::new(false),
        })
    }

    /// The file with the debug information.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.object.main.path
    }

    /// Whether the file with the debug information is not linked, such as a kernel module. Its `.text` has the address 0, so 0
    /// can be the address of a function; in linked files, only functions that the linker dropped have it.
    #[must_use]
    pub fn is_relocatable(&self) -> bool {
        self.object.main.is_relocatable
    }

    /// Calls `visit` for the compilation units accepted by `prefilter`, in file order, until `visit` breaks. Units with damaged
    /// headers, or with a `.dwo` file that is missing or unusable, are skipped; returns how many units `prefilter` could not
    /// check for lack of their `.dwo` file.
    pub fn for_each_unit(
        &self,
        files: &dyn Files,
        prefilter: &UnitPrefilter<'_>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> usize {
        let selection = prefilter.select_units(self, files);
        self.for_numbered(
            files,
            selection.selected,
            selection.cached_names.as_ref(),
            visit,
        );
        selection.missing
    }

    /// Calls `visit` for the units that may cover `address`, until `visit` breaks.
    pub fn for_units_at(
        &self,
        files: &dyn Files,
        address: u64,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) {
        let dwarf = || Units::new(&self.object).main;
        let index = &self.object.index;
        // Most users look up once, for which an index of all addresses isn't worthwhile.
        let around = match self.was_searched.swap(true, Ordering::Relaxed) {
            true => index.covering(address, dwarf).collect(),
            false => index.covering_once(address, &dwarf()),
        };
        // Names are not searched here.
        let cached_names = None;
        self.for_numbered(files, around, cached_names, visit);
    }

    /// Calls `visit` for the units with these numbers, until `visit` breaks.
    fn for_numbered(
        &self,
        files: &dyn Files,
        numbers: Vec<UnitNumber>,
        cached_names: Option<&CachedNames>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) {
        let units = Units::new(&self.object);
        for number in numbers {
            let Some(unit) = units.numbered(number).map(Rc::new) else {
                continue;
            };
            let visited = self.visit_unit(files, &units, &unit, cached_names, visit);
            if let Some(ControlFlow::Break(())) = visited {
                break;
            }
        }
    }

    /// Calls `visit` for one unit of the object's file: `unit` itself, or if it is a skeleton unit, the unit with its entries
    /// in a `.dwo` file. `None` if that file is missing or unusable.
    pub(super) fn visit_unit<'u>(
        &'u self,
        files: &dyn Files,
        units: &'u Units<'u, 'u>,
        unit: &Rc<Unit<Slice<'u>>>,
        cached_names: Option<&'u CachedNames>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let Some(dwo_id) = unit.dwo_id else {
            return Some(visit(DebugUnit {
                info: self,
                dwarf: &units.main,
                unit: Rc::clone(unit),
                line_dwarf: &units.main,
                line_unit: Rc::clone(unit),
                cached_names,
            }));
        };
        let skeleton = unit;
        let split = SplitEntries::find(files, &self.object, units, skeleton, dwo_id).ok()?;
        Some(self.visit_split(&split, &units.main, skeleton, visit))
    }

    fn visit_split<'u>(
        &'u self,
        split: &'u SplitEntries,
        main: &'u Dwarf<Slice<'u>>,
        skeleton: &Rc<Unit<Slice<'u>>>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some((dwarf, mut unit)) = split.open(&self.object, main) else {
            // Only if a package is damaged: `SplitEntries::find` has already opened the unit of a `.dwo` file.
            return ControlFlow::Continue(());
        };
        unit.copy_relocated_attributes(skeleton);
        visit(DebugUnit {
            info: self,
            dwarf: &dwarf,
            unit: Rc::new(unit),
            line_dwarf: main,
            line_unit: Rc::clone(skeleton),
            // The cache is for the strings of the object's file, not of the `.dwo` file.
            cached_names: None,
        })
    }

    /// Offset of the unit that contains the entry at `offset` of `.debug_info`.
    #[must_use]
    pub fn unit_containing(&self, offset: DebugInfoOffset) -> Option<DebugInfoOffset> {
        let index = &self.object.index;
        index
            .offset(index.containing(offset.0)?)
            .map(DebugInfoOffset)
    }
}
