//! The debug information of one object as it stands there, for those who ask for more than functions and lines.

use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use gimli::{DebugInfoOffset, Dwarf, Unit};

use super::Findings;
use super::defined::KnownNames;
use super::index::UnitNumber;
use super::open::find_object;
use super::sections::{Flavour, Slice};
use super::sift::Sift;
use super::source::DebugSource;
use super::split::Split;
use super::units::{Object, Units};
use crate::files::Files;
use crate::request::SearchPaths;

/// An object's debug information: found, unpacked and completed the way [`Lines`](super::Lines) does it.
#[derive(Debug)]
pub struct DebugInfo {
    pub(super) object: Object,
    /// Whether an address was looked up.
    is_asked: AtomicBool,
}

/// One unit of compilation, its entries in the object's file or in a `.dwo` of its own.
#[derive(Debug, Clone)]
pub struct DebugUnit<'u> {
    /// The object.
    pub info: &'u DebugInfo,
    /// What the entries refer to.
    pub dwarf: &'u Dwarf<Slice<'u>>,
    /// The entries.
    pub unit: Rc<Unit<Slice<'u>>>,
    /// What the line table refers to.
    pub lines: &'u Dwarf<Slice<'u>>,
    /// The unit with the line table: the same, or the skeleton of split DWARF.
    pub skeleton: Rc<Unit<Slice<'u>>>,
    /// What the search of a [`Sift`] for a function knows of names, if it knows of those of this unit.
    pub known: Option<&'u KnownNames>,
}

impl DebugInfo {
    /// That of a loaded object. `None` where none of its files has any.
    pub fn open(files: &dyn Files, paths: &SearchPaths, source: &DebugSource) -> Option<Self> {
        let mut findings = Findings::default();
        let flavour = Flavour::MainWithValues;
        let object = find_object(files, paths, source, flavour, &mut findings)?;
        Some(Self {
            object,
            is_asked: AtomicBool::new(false),
        })
    }

    /// The file that it is in.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.object.main.path
    }

    /// Hands the units of compilation that `sift` keeps to `visit`, in file order, until that breaks off. Units whose head is
    /// damaged, and those whose `.dwo` file is missing, are passed over; how many the latter are is returned.
    pub fn for_each_unit(
        &self,
        files: &dyn Files,
        sift: &Sift<'_>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> usize {
        let sifted = sift.look(self, files);
        self.for_numbered(files, sifted.kept, sifted.known.as_ref(), visit);
        sifted.missing
    }

    /// Hands the units whose code may be at `address` to `visit`, until that breaks off.
    pub fn for_units_at(
        &self,
        files: &dyn Files,
        address: u64,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) {
        let dwarf = || Units::new(&self.object).main;
        let index = &self.object.index;
        // Most ask once: that is not worth an index of all addresses.
        let around = match self.is_asked.swap(true, Ordering::Relaxed) {
            true => index.covering(address, dwarf).collect(),
            false => index.covering_once(address, &dwarf()),
        };
        self.for_numbered(files, around, None, visit);
    }

    fn for_numbered(
        &self,
        files: &dyn Files,
        numbers: Vec<UnitNumber>,
        known: Option<&KnownNames>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) {
        let units = Units::new(&self.object);
        for number in numbers {
            let Some(skeleton) = units.numbered(number).map(Rc::new) else {
                continue;
            };
            if let Some(ControlFlow::Break(())) = self.visit(files, &units, &skeleton, known, visit)
            {
                break;
            }
        }
    }

    /// Hands over one unit; `None` where its entries are in a file that is missing.
    pub(super) fn visit<'u>(
        &'u self,
        files: &dyn Files,
        units: &'u Units<'u, 'u>,
        skeleton: &Rc<Unit<Slice<'u>>>,
        known: Option<&'u KnownNames>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> Option<ControlFlow<()>> {
        let Some(id) = skeleton.dwo_id else {
            return Some(visit(DebugUnit {
                info: self,
                dwarf: &units.main,
                unit: Rc::clone(skeleton),
                lines: &units.main,
                skeleton: Rc::clone(skeleton),
                known,
            }));
        };
        let split = Split::find(files, &self.object, units, skeleton, id).ok()?;
        Some(self.visit_split(&split, &units.main, skeleton, visit))
    }

    fn visit_split<'u>(
        &'u self,
        split: &'u Split,
        main: &'u Dwarf<Slice<'u>>,
        skeleton: &Rc<Unit<Slice<'u>>>,
        visit: &mut dyn FnMut(DebugUnit<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some((dwarf, mut unit)) = split.open(&self.object, main) else {
            return ControlFlow::Continue(());
        };
        unit.copy_relocated_attributes(skeleton);
        visit(DebugUnit {
            info: self,
            dwarf: &dwarf,
            unit: Rc::new(unit),
            lines: main,
            skeleton: Rc::clone(skeleton),
            // Its texts are others.
            known: None,
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
