//! The debug information of one object as it stands there, for those who ask for more than functions and lines.

use std::ops::ControlFlow;
use std::path::Path;

use gimli::{DebugInfoOffset, Dwarf, Unit, UnitType};

use super::Findings;
use super::open::find_object;
use super::sections::{Flavour, Slice};
use super::source::DebugSource;
use super::split::Split;
use super::units::{Object, Units};
use crate::files::Files;
use crate::request::SearchPaths;

/// An object's debug information: found, unpacked and completed the way [`Lines`](super::Lines) does it.
#[derive(Debug)]
pub struct DebugInfo {
    object: Object,
}

/// One unit of compilation, its entries in the object's file or in a `.dwo` of its own.
#[derive(Debug)]
pub struct DebugUnit<'u> {
    /// The object.
    pub info: &'u DebugInfo,
    /// What the entries refer to.
    pub dwarf: &'u Dwarf<Slice<'u>>,
    /// The entries.
    pub unit: Unit<Slice<'u>>,
    /// What the line table refers to.
    pub lines: &'u Dwarf<Slice<'u>>,
    /// The unit with the line table: the same, or the skeleton of split DWARF.
    pub skeleton: &'u Unit<Slice<'u>>,
}

impl DebugInfo {
    /// That of a loaded object. `None` where none of its files has any.
    pub fn open(files: &dyn Files, paths: &SearchPaths, source: &DebugSource) -> Option<Self> {
        let mut findings = Findings::default();
        let flavour = Flavour::MainWithValues;
        let object = find_object(files, paths, source, flavour, &mut findings)?;
        Some(Self { object })
    }

    /// The file that it is in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.object.main.path
    }

    /// Hands every unit of compilation to `visit`, in file order, until that breaks off. Units whose head is damaged, and
    /// those whose `.dwo` file is missing, are passed over; how many the latter are is returned.
    pub fn for_each_unit(
        &self,
        files: &dyn Files,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> usize {
        let units = Units::new(&self.object);
        let mut headers = units.main.units();
        let mut missing = 0;
        while let Ok(Some(header)) = headers.next() {
            if !matches!(
                header.type_(),
                UnitType::Compilation | UnitType::Skeleton(_)
            ) {
                continue;
            }
            let Ok(skeleton) = units.main.unit(header) else {
                continue;
            };
            match self.visit(files, &units, &skeleton, visit) {
                Some(flow) if flow.is_break() => break,
                Some(_) => {}
                None => missing += 1,
            }
        }
        missing
    }

    /// Hands the units whose code may be at `address` to `visit`, until that breaks off.
    pub fn for_units_at(
        &self,
        files: &dyn Files,
        address: u64,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) {
        let units = Units::new(&self.object);
        for number in self.object.index.covering(address) {
            let Some(skeleton) = units.numbered(number) else {
                continue;
            };
            if let Some(ControlFlow::Break(())) = self.visit(files, &units, &skeleton, visit) {
                break;
            }
        }
    }

    /// Hands over one unit; `None` where its entries are in a file that is missing.
    fn visit<'u>(
        &'u self,
        files: &dyn Files,
        units: &'u Units<'u, 'u>,
        skeleton: &'u Unit<Slice<'u>>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let Some(id) = skeleton.dwo_id else {
            return Some(self.visit_own(&units.main, skeleton, visit));
        };
        let split = Split::find(files, &self.object, units, skeleton, id).ok()?;
        Some(self.visit_split(&split, &units.main, skeleton, visit))
    }

    fn visit_own<'u>(
        &'u self,
        dwarf: &'u Dwarf<Slice<'u>>,
        skeleton: &'u Unit<Slice<'u>>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Ok(unit) = dwarf.unit(skeleton.header) else {
            return ControlFlow::Continue(());
        };
        visit(DebugUnit {
            info: self,
            dwarf,
            unit,
            lines: dwarf,
            skeleton,
        })
    }

    fn visit_split<'u>(
        &'u self,
        split: &'u Split,
        main: &'u Dwarf<Slice<'u>>,
        skeleton: &'u Unit<Slice<'u>>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some((dwarf, mut unit)) = split.open(&self.object, main) else {
            return ControlFlow::Continue(());
        };
        unit.copy_relocated_attributes(skeleton);
        visit(DebugUnit {
            info: self,
            dwarf: &dwarf,
            unit,
            lines: main,
            skeleton,
        })
    }

    /// Where the unit begins that the entry at `offset` of `.debug_info` belongs to.
    #[must_use]
    pub fn unit_containing(&self, offset: DebugInfoOffset) -> Option<DebugInfoOffset> {
        let index = &self.object.index;
        index
            .offset(index.containing(offset.0)?)
            .map(DebugInfoOffset)
    }
}
