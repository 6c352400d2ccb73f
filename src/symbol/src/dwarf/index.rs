//! Which compilation units an object has, and which of them cover an address: all that is read of a unit before the
//! first address falls into it.

use std::sync::OnceLock;

use gimli::{DebugInfoOffset, Dwarf, UnitHeader, UnitType};
use rustc_hash::FxHashMap;

use super::ranges::{Attributes, for_each_range};
use super::sections::Slice;

/// Position of a unit in its [`Index`].
pub(super) type UnitNumber = u32;

/// A range of addresses and the unit that claims it.
#[derive(Debug, Clone, Copy)]
struct Claim {
    start: u64,
    end: u64,
    /// The highest end of this claim and those before it.
    reach: u64,
    unit: UnitNumber,
}

/// The units of one object. Empty where there are none.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Their offsets in `.debug_info`, rising.
    offsets: Vec<usize>,
    /// Read when the first address is looked up.
    claims: OnceLock<Claims>,
}

impl Index {
    /// Reads the headers of all units. With it comes what stopped the reading short, if anything did.
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

    /// The units that cover `address`, the one that starts nearest to it first. `dwarf` gives the file that the index is of.
    pub(super) fn covering<'d>(
        &self,
        address: u64,
        dwarf: impl FnOnce() -> Dwarf<Slice<'d>>,
    ) -> impl Iterator<Item = UnitNumber> {
        let claims = self
            .claims
            .get_or_init(|| Claims::read(&dwarf(), &self.offsets, &|_| true));
        claims.covering(address)
    }

    /// The same for those who look up few addresses: nothing is kept.
    pub(super) fn covering_once(&self, address: u64, dwarf: &Dwarf<Slice<'_>>) -> Vec<UnitNumber> {
        let is_around = |(start, end): (u64, u64)| (start..end).contains(&address);
        let claims = Claims::read(dwarf, &self.offsets, &is_around);
        claims.covering(address).collect()
    }

    /// The unit that the entry at `offset` of `.debug_info` belongs to.
    pub(super) fn containing(&self, offset: usize) -> Option<UnitNumber> {
        let after = self.offsets.partition_point(|&start| start <= offset);
        UnitNumber::try_from(after.checked_sub(1)?).ok()
    }

    /// Where a unit begins in `.debug_info`.
    pub(super) fn offset(&self, unit: UnitNumber) -> Option<usize> {
        self.offsets.get(unit as usize).copied()
    }

    /// The number of units.
    pub(super) fn len(&self) -> usize {
        self.offsets.len()
    }
}

/// Which units claim which addresses.
#[derive(Debug, Default)]
struct Claims {
    /// By start.
    sorted: Vec<Claim>,
}

impl Claims {
    /// What `.debug_aranges` says of the units that begin at `offsets`, as far as `is_wanted` says yes to a range. Units that
    /// are not in there are asked themselves.
    fn read(
        dwarf: &Dwarf<Slice<'_>>,
        offsets: &[usize],
        is_wanted: &dyn Fn((u64, u64)) -> bool,
    ) -> Self {
        let listed = address_ranges(dwarf, is_wanted);
        let mut claims = Self::default();
        for (unit, &offset) in (0..).zip(offsets) {
            match listed.get(&offset) {
                Some(ranges) => ranges.iter().for_each(|&range| claims.add(unit, range)),
                // A damaged unit has no addresses; the others still have theirs.
                None => _ = claims.ask(dwarf, offset, unit, is_wanted),
            }
        }
        claims
            .sorted
            .sort_unstable_by_key(|claim| (claim.start, claim.end, claim.unit));
        let mut reach = 0;
        for claim in &mut claims.sorted {
            reach = claim.end.max(reach);
            claim.reach = reach;
        }
        claims
    }

    /// Adds what the root entry of a unit says, or failing that its lines.
    fn ask(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        offset: usize,
        number: UnitNumber,
        is_wanted: &dyn Fn((u64, u64)) -> bool,
    ) -> gimli::Result<()> {
        let header = dwarf
            .debug_info
            .header_from_offset(DebugInfoOffset(offset))?;
        // Units of types and parts of other units have no code.
        if !is_of_code(&header) {
            return Ok(());
        }
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(dwarf);
        let mut entries = unit.entries_raw(None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        let mut attributes = Attributes::default();
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            attributes.take(unit, attribute.name(), attribute.value())?;
        }
        let mut any = false;
        let mut add = |range| {
            if is_wanted(range) {
                self.add(number, range);
            }
        };
        for_each_range(unit, &attributes, |start, end| {
            add((start, end));
            any = true;
        })?;
        if !any && let Some(program) = unit.line_program.clone() {
            super::rows::sequences(program).into_iter().for_each(add);
        }
        Ok(())
    }

    fn add(&mut self, unit: UnitNumber, (start, end): (u64, u64)) {
        self.sorted.push(Claim {
            start,
            end,
            reach: 0,
            unit,
        });
    }

    /// The units that cover `address`, the one that starts nearest to it first.
    fn covering(&self, address: u64) -> impl Iterator<Item = UnitNumber> {
        let after = self.sorted.partition_point(|claim| claim.start <= address);
        let before = self.sorted.get(..after).unwrap_or_default();
        let reaching = before
            .iter()
            .rev()
            .take_while(move |claim| claim.reach > address);
        reaching
            .filter(move |claim| claim.end > address)
            .map(|claim| claim.unit)
    }
}

fn is_of_code(header: &UnitHeader<Slice<'_>>) -> bool {
    matches!(
        header.type_(),
        UnitType::Compilation | UnitType::Skeleton(_)
    )
}

/// What `.debug_aranges` says, by offset of the unit, of ranges that are wanted. Damage in it means that the units are asked.
fn address_ranges(
    dwarf: &Dwarf<Slice<'_>>,
    is_wanted: &dyn Fn((u64, u64)) -> bool,
) -> FxHashMap<usize, Vec<(u64, u64)>> {
    let mut listed: FxHashMap<usize, Vec<(u64, u64)>> = FxHashMap::default();
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let mut ranges = Vec::new();
        let mut any = false;
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next() {
            let range = (entry.range().begin, entry.range().end);
            let has_code = range.0 < range.1;
            any |= has_code;
            ranges.extend(Some(range).filter(|range| has_code && is_wanted(*range)));
        }
        if any {
            let known = listed.entry(header.debug_info_offset().0).or_default();
            known.append(&mut ranges);
        }
    }
    listed
}
