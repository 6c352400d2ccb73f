//! The units of an object and their address ranges.

use std::sync::OnceLock;

use gimli::{DebugInfoOffset, Dwarf, UnitHeader, UnitType};
use rustc_hash::FxHashMap;

use super::ranges::{RangeAttributes, for_each_range};
use super::sections::Slice;

/// Index of a unit in its [`UnitIndex`].
pub(super) type UnitNumber = u32;

/// An address range of a unit.
#[derive(Debug, Clone, Copy)]
struct UnitRange {
    start: u64,
    end: u64,
    /// The maximum end of this range and all before it.
    reach: u64,
    unit: UnitNumber,
}

/// The units of one object; empty if there are none.
#[derive(Debug, Default)]
pub(super) struct UnitIndex {
    /// Their offsets in `.debug_info`, ascending.
    offsets: Vec<usize>,
    /// Computed when the first address is looked up.
    ranges_of_units: OnceLock<UnitRanges>,
}

impl UnitIndex {
    /// Reads the headers of all units; also returns the error at which reading ended, if any.
    pub(super) fn build(dwarf: &Dwarf<Slice<'_>>) -> (Self, Option<gimli::Error>) {
        let mut index = Self::default();
        let mut units = dwarf.units();
        let damage = loop {
            match units.next() {
                Ok(Some(header)) => {
                    let offset = header.debug_info_offset().map(|offset| offset.0);
                    index.offsets.extend(offset);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        (index, damage)
    }

    /// The units that cover `address`, the one with the closest start first. `dwarf` returns the sections of the object; it is
    /// only called for the first address.
    pub(super) fn covering<'d>(
        &self,
        address: u64,
        dwarf: impl FnOnce() -> Dwarf<Slice<'d>>,
    ) -> impl Iterator<Item = UnitNumber> {
        let any_range = |_: (u64, u64)| true;
        let ranges_of_units = self
            .ranges_of_units
            .get_or_init(|| UnitRanges::read(&dwarf(), &self.offsets, &any_range));
        ranges_of_units.covering(address)
    }

    /// Like `covering`, but ranges that don't contain `address` are ignored, and nothing is cached: for few lookups.
    pub(super) fn covering_once(&self, address: u64, dwarf: &Dwarf<Slice<'_>>) -> Vec<UnitNumber> {
        let is_around = |(start, end): (u64, u64)| (start..end).contains(&address);
        let ranges_of_units = UnitRanges::read(dwarf, &self.offsets, &is_around);
        ranges_of_units.covering(address).collect()
    }

    /// The unit that contains the entry at `offset` of `.debug_info`.
    pub(super) fn containing(&self, offset: usize) -> Option<UnitNumber> {
        let after = self.offsets.partition_point(|&start| start <= offset);
        UnitNumber::try_from(after.checked_sub(1)?).ok()
    }

    /// Offset of a unit in `.debug_info`.
    pub(super) fn offset(&self, unit: UnitNumber) -> Option<usize> {
        self.offsets.get(unit as usize).copied()
    }

    /// The number of units.
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }
}

/// Address ranges of units.
#[derive(Debug, Default)]
struct UnitRanges {
    /// Sorted by start.
    sorted: Vec<UnitRange>,
}

impl UnitRanges {
    /// Reads the ranges accepted by `is_wanted` from `.debug_aranges` for the units at `offsets`.
    /// The ranges of units that are not in this section are read from the units themselves.
    fn read(
        dwarf: &Dwarf<Slice<'_>>,
        offsets: &[usize],
        is_wanted: &dyn Fn((u64, u64)) -> bool,
    ) -> Self {
        let listed = address_ranges(dwarf, is_wanted);
        let mut ranges_of_units = Self::default();
        for (unit, &offset) in (0..).zip(offsets) {
            match listed.get(&offset) {
                Some(ranges) => ranges
                    .iter()
                    .for_each(|&(start, end)| ranges_of_units.add(unit, start, end)),
                // Errors are ignored: a damaged unit has no known addresses.
                None => _ = ranges_of_units.add_unit(dwarf, offset, unit, is_wanted),
            }
        }
        ranges_of_units
            .sorted
            .sort_unstable_by_key(|range| (range.start, range.end, range.unit));
        let mut reach = 0;
        for range in &mut ranges_of_units.sorted {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        ranges_of_units
    }

    /// Adds the ranges of the root entry of a unit or, if it has none, those of its line program.
    fn add_unit(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        offset: usize,
        number: UnitNumber,
        is_wanted: &dyn Fn((u64, u64)) -> bool,
    ) -> gimli::Result<()> {
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(offset))?;
        if !is_of_compilation(&header) {
            return Ok(());
        }
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(dwarf);
        let mut entries = unit.entries_raw(None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        let mut attributes = RangeAttributes::default();
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            attributes.take(unit, attribute.name(), attribute.value())?;
        }
        let mut has_ranges = false;
        let mut add = |start, end| {
            if is_wanted((start, end)) {
                self.add(number, start, end);
            }
        };
        for_each_range(unit, &attributes, |start, end| {
            add(start, end);
            has_ranges = true;
        })?;
        if !has_ranges && let Some(program) = unit.line_program.clone() {
            let ranges = super::rows::sequences(program).into_iter();
            ranges.for_each(|(start, end)| add(start, end));
        }
        Ok(())
    }

    fn add(&mut self, unit: UnitNumber, start: u64, end: u64) {
        self.sorted.push(UnitRange {
            start,
            end,
            // Computed by `read` after sorting.
            reach: 0,
            unit,
        });
    }

    /// The units that cover `address`, the one with the closest start first.
    fn covering(&self, address: u64) -> impl Iterator<Item = UnitNumber> {
        let after = self.sorted.partition_point(|range| range.start <= address);
        let before = self.sorted.get(..after).unwrap_or_default();
        let reaching = before
            .iter()
            .rev()
            .take_while(move |range| range.reach > address);
        reaching
            .filter(move |range| range.end > address)
            .map(|range| range.unit)
    }
}

/// Whether a unit is searched by itself. Type and partial units are not: they are read when others refer to them.
pub(super) fn is_of_compilation(header: &UnitHeader<Slice<'_>>) -> bool {
    matches!(
        header.type_(),
        UnitType::Compilation | UnitType::Skeleton(_)
    )
}

/// The ranges of `.debug_aranges` that are accepted by `is_wanted`, by offset of the unit. A unit with ranges there of which
/// none is accepted has an empty list; a unit without any range there is not in the map. Empty ranges do not count.
fn address_ranges(
    dwarf: &Dwarf<Slice<'_>>,
    is_wanted: &dyn Fn((u64, u64)) -> bool,
) -> FxHashMap<usize, Vec<(u64, u64)>> {
    let mut listed: FxHashMap<usize, Vec<(u64, u64)>> = FxHashMap::default();
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let mut ranges = Vec::new();
        let mut has_ranges = false;
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next() {
            let range = (entry.range().begin, entry.range().end);
            let is_nonempty = range.0 < range.1;
            has_ranges |= is_nonempty;
            ranges.extend(Some(range).filter(|range| is_nonempty && is_wanted(*range)));
        }
        if has_ranges {
            let known = listed.entry(header.debug_info_offset().0).or_default();
            known.append(&mut ranges);
        }
    }
    listed
}
