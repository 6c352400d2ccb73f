//! One entry of the debug information.

use std::rc::Rc;

use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, DwTag, UnitOffset, UnitRef};
use rperf_symbol::dwarf::Slice;

use super::compile_unit::{CompileUnit, UnitReader};
use super::lines::file_path;

/// The maximum number of entries in which an attribute is searched: the entry itself, its origin, and so on.
const MAX_SEARCHED: usize = 16;

/// A debugging information entry (DIE) and its unit.
#[derive(Debug, Clone)]
pub(crate) struct Die<'w, 'u> {
    /// The searched unit, which contains the entry or from which it was reached.
    compile_unit: &'w CompileUnit<'u>,
    /// The unit that contains the entry: the searched unit or another one.
    home: Rc<UnitReader<'u>>,
    entry: Rc<DebuggingInformationEntry<Slice<'u>>>,
}

impl<'w, 'u> Die<'w, 'u> {
    pub(super) fn read(
        compile_unit: &'w CompileUnit<'u>,
        home: &Rc<UnitReader<'u>>,
        offset: UnitOffset,
    ) -> Option<Self> {
        let entry = home.unit.entry(offset).ok()?;
        Some(Self::new(compile_unit, home, entry))
    }

    fn new(
        compile_unit: &'w CompileUnit<'u>,
        home: &Rc<UnitReader<'u>>,
        entry: DebuggingInformationEntry<Slice<'u>>,
    ) -> Self {
        Self {
            compile_unit,
            home: Rc::clone(home),
            entry: Rc::new(entry),
        }
    }

    pub(crate) fn tag(&self) -> DwTag {
        self.entry.tag
    }

    /// Returns the offset of the entry in its unit.
    pub(crate) fn offset(&self) -> UnitOffset {
        self.entry.offset
    }

    /// Returns the unit of the entry, which resolves the values of its attributes.
    pub(super) fn unit(&self) -> UnitRef<'_, Slice<'u>> {
        self.home.unit.unit_ref(self.home.dwarf)
    }

    /// Whether both are the same entry.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.home.key == other.home.key && self.entry.offset == other.entry.offset
    }

    /// Returns the offset of the entry if it is in the searched unit, otherwise `None`.
    pub(super) fn offset_here(&self) -> Option<UnitOffset> {
        (self.home.key == self.compile_unit.home.key).then_some(self.entry.offset)
    }

    /// Returns an attribute of this entry itself.
    pub(crate) fn own(&self, name: DwAt) -> Option<AttributeValue<Slice<'u>>> {
        self.entry.attr_value(name)
    }

    /// Returns an attribute of this entry or, if it has none, of its [`origin`](Self::origin), and so on; with the entry that has
    /// the attribute.
    pub(crate) fn find(&self, name: DwAt) -> Option<(Self, AttributeValue<Slice<'u>>)> {
        let mut die = self.clone();
        for _ in 0..MAX_SEARCHED {
            if let Some(value) = die.own(name) {
                return Some((die, value));
            }
            die = die.origin()?;
        }
        None
    }

    /// Returns the abstract origin of the entry; if it has none, its specification.
    pub(crate) fn origin(&self) -> Option<Self> {
        let abstract_origin = self.reference(gimli::DW_AT_abstract_origin);
        abstract_origin.or_else(|| self.reference(gimli::DW_AT_specification))
    }

    /// Returns the entry that an attribute of this entry itself refers to.
    pub(crate) fn reference(&self, name: DwAt) -> Option<Self> {
        // References to `.debug_info` stay in the file of the entry.
        let is_supplementary = self.home.key.0;
        match self.own(name)? {
            AttributeValue::UnitRef(offset) => Self::read(self.compile_unit, &self.home, offset),
            AttributeValue::DebugInfoRef(offset) => self
                .compile_unit
                .at_debug_info_offset(offset, is_supplementary),
            AttributeValue::DebugInfoRefSup(offset) => {
                let is_supplementary = true;
                self.compile_unit
                    .at_debug_info_offset(offset, is_supplementary)
            }
            AttributeValue::DebugTypesRef(signature) => {
                self.compile_unit.type_with_signature(signature)
            }
            _ => None,
        }
    }

    /// Returns a string attribute of the entry or its origin.
    fn text(&self, name: DwAt) -> Option<String> {
        let (die, value) = self.find(name)?;
        let text = die.unit().attr_string(value).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// Returns the name of the entry in the source.
    pub(crate) fn name(&self) -> Option<String> {
        self.text(gimli::DW_AT_name)
    }

    /// Returns the linkage name of the entry.
    pub(crate) fn linkage_name(&self) -> Option<String> {
        self.text(gimli::DW_AT_linkage_name)
            .or_else(|| self.text(gimli::DW_AT_MIPS_linkage_name))
    }

    /// Returns a numeric attribute of the entry or its origin; `None` if it is negative.
    pub(crate) fn number(&self, name: DwAt) -> Option<u64> {
        let (_, value) = self.find(name)?;
        value.udata_value()
    }

    /// Returns the line of the entry's declaration.
    pub(crate) fn declared_line(&self) -> Option<u32> {
        u32::try_from(self.number(gimli::DW_AT_decl_line)?).ok()
    }

    /// Returns the source file of the entry's declaration.
    pub(crate) fn declared_file(&self) -> Option<String> {
        self.file(gimli::DW_AT_decl_file)
    }

    /// Returns the line of the call of an inlined function.
    pub(crate) fn call_line(&self) -> Option<u32> {
        u32::try_from(self.number(gimli::DW_AT_call_line)?).ok()
    }

    fn file(&self, name: DwAt) -> Option<String> {
        let (die, value) = self.find(name)?;
        let index = match value {
            AttributeValue::FileIndex(index) => index,
            value => value.udata_value()?,
        };
        if Rc::ptr_eq(&die.home, &self.compile_unit.home) {
            return self.compile_unit.lines().file(index).map(str::to_owned);
        }
        let header = die.home.unit.line_program.as_ref()?.header();
        file_path(die.unit(), header, header.file(index)?)
    }

    /// Returns the start and the exclusive end of each address range of the entry. Empty ranges are omitted.
    pub(crate) fn ranges(&self) -> Vec<(u64, u64)> {
        let unit = self.unit();
        let list = self.own(gimli::DW_AT_ranges);
        let list = list.and_then(|value| unit.attr_ranges(value).ok().flatten());
        let mut found = Vec::new();
        if let Some(mut ranges) = list {
            while let Ok(Some(range)) = ranges.next() {
                found.push((range.begin, range.end));
            }
        } else if let Some(start) = self.address(gimli::DW_AT_low_pc) {
            // In 64-bit objects, the tombstone of removed code, -1, makes the sum wrap, and the range empty.
            let end = match self.own(gimli::DW_AT_high_pc) {
                Some(AttributeValue::Udata(size)) => Some(start.wrapping_add(size)),
                _ => self.address(gimli::DW_AT_high_pc),
            };
            found.extend(end.map(|end| (start, end)));
        }
        found.retain(|(start, end)| start < end);
        found
    }

    /// Returns the address in an attribute of this entry itself.
    fn address(&self, name: DwAt) -> Option<u64> {
        self.unit().attr_address(self.own(name)?).ok().flatten()
    }

    /// Returns the end of the address range that contains `address`.
    pub(crate) fn end_around(&self, address: u64) -> Option<u64> {
        let ranges = self.ranges();
        let mut around = ranges
            .iter()
            .filter(|(start, end)| (*start..*end).contains(&address));
        around.next().map(|(_, end)| *end)
    }

    /// Whether an address range of the entry contains `address`.
    pub(crate) fn covers(&self, address: u64) -> bool {
        self.end_around(address).is_some()
    }

    /// Returns the address at which the code of a function or block is entered; `None` without code, or if the linker dropped
    /// the code (address 0 in a linked file).
    pub(crate) fn entry_address(&self) -> Option<u64> {
        let first = || self.ranges().first().map(|(start, _)| *start);
        let low = || self.address(gimli::DW_AT_low_pc);
        let entry_pc = match self.own(gimli::DW_AT_entry_pc) {
            Some(AttributeValue::Udata(distance)) => {
                let base = low().or_else(first)?;
                Some(base.wrapping_add(distance))
            }
            Some(_) => self.address(gimli::DW_AT_entry_pc),
            None => None,
        };
        let is_kept = |address: &u64| *address != 0 || self.compile_unit.may_begin_at_zero();
        entry_pc.or_else(low).or_else(first).filter(is_kept)
    }

    /// Returns the direct children of the entry.
    pub(crate) fn children(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if !self.entry.has_children {
            return found;
        }
        let Ok(mut tree) = self.home.unit.entries_tree(Some(self.entry.offset)) else {
            return found;
        };
        let Ok(root) = tree.root() else {
            return found;
        };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            found.push(Self::new(
                self.compile_unit,
                &self.home,
                child.entry().clone(),
            ));
        }
        found
    }

    /// Passes the descendants of the entry to `visit` in pre-order, and descends into entries for which `visit` returns true.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(&Self) -> bool) {
        let Ok(mut entries) = self.home.unit.entries_at_offset(self.entry.offset) else {
            return;
        };
        // A single pass without recursion; its first entry is `self`.
        let mut descends = true;
        let mut own_depth = None;
        loop {
            let moved = match descends {
                true => entries.next_entry(),
                // Without a sibling, this moves to the null entry that ends the list: the pass continues there, or ends.
                false => entries.next_sibling().map(|_| true),
            };
            if !matches!(moved, Ok(true)) {
                return;
            }
            let depth = entries.depth();
            let Some(own_depth) = own_depth else {
                own_depth = Some(depth);
                continue;
            };
            if depth <= own_depth {
                return;
            }
            let die = entries.current();
            let die = die.map(|entry| Self::new(self.compile_unit, &self.home, entry.clone()));
            // A null entry, which ends a list of siblings, is not visited.
            descends = die.is_none_or(|die| visit(&die));
        }
    }
}
