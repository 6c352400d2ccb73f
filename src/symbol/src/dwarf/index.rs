//! Which compilation units an object has, and which of them cover an address: all that is read of a unit before the
//! first address falls into it.

use gimli::{Dwarf, UnitHeader, UnitType};
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
    /// By start.
    claims: Vec<Claim>,
}

impl Index {
    /// Reads the headers of all units, and what `.debug_aranges` says of their addresses. Units that are not in there are
    /// asked themselves. With it comes what stopped the reading short, if anything did.
    pub(super) fn build(dwarf: &Dwarf<Slice<'_>>) -> (Self, Option<gimli::Error>) {
        let mut index = Self::default();
        let listed = address_ranges(dwarf);
        let mut units = dwarf.units();
        let damage = loop {
            match units.next() {
                Ok(Some(header)) => index.add(dwarf, header, &listed),
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        index
            .claims
            .sort_unstable_by_key(|claim| (claim.start, claim.end, claim.unit));
        let mut reach = 0;
        for claim in &mut index.claims {
            reach = claim.end.max(reach);
            claim.reach = reach;
        }
        (index, damage)
    }

    /// The offsets alone, for a file whose units are only referred to.
    pub(super) fn of_offsets(dwarf: &Dwarf<Slice<'_>>) -> Self {
        let mut index = Self::default();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            index
                .offsets
                .extend(header.debug_info_offset().map(|offset| offset.0));
        }
        index
    }

    fn add(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        header: UnitHeader<Slice<'_>>,
        listed: &FxHashMap<usize, Vec<(u64, u64)>>,
    ) {
        let Some(offset) = header.debug_info_offset() else {
            return;
        };
        let Ok(unit) = UnitNumber::try_from(self.offsets.len()) else {
            return;
        };
        self.offsets.push(offset.0);
        // Units of types and parts of other units have no code.
        if !matches!(
            header.type_(),
            UnitType::Compilation | UnitType::Skeleton(_)
        ) {
            return;
        }
        match listed.get(&offset.0) {
            Some(ranges) => ranges.iter().for_each(|&range| self.claim(unit, range)),
            // A damaged unit has no addresses; the others still have theirs.
            None => _ = self.ask(dwarf, header, unit),
        }
    }

    /// Claims what the root entry of a unit says, or failing that its lines.
    fn ask(
        &mut self,
        dwarf: &Dwarf<Slice<'_>>,
        header: UnitHeader<Slice<'_>>,
        number: UnitNumber,
    ) -> gimli::Result<()> {
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
        for_each_range(unit, &attributes, |start, end| {
            self.claim(number, (start, end));
            any = true;
        })?;
        if !any && let Some(program) = unit.line_program.clone() {
            for (start, end) in super::rows::sequences(program) {
                self.claim(number, (start, end));
            }
        }
        Ok(())
    }

    fn claim(&mut self, unit: UnitNumber, (start, end): (u64, u64)) {
        self.claims.push(Claim {
            start,
            end,
            reach: 0,
            unit,
        });
    }

    /// The units that cover `address`, the one that starts nearest to it first.
    pub(super) fn covering(&self, address: u64) -> impl Iterator<Item = UnitNumber> {
        let after = self.claims.partition_point(|claim| claim.start <= address);
        let before = self.claims.get(..after).unwrap_or_default();
        let reaching = before
            .iter()
            .rev()
            .take_while(move |claim| claim.reach > address);
        reaching
            .filter(move |claim| claim.end > address)
            .map(|claim| claim.unit)
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

/// What `.debug_aranges` says, by offset of the unit. Damage in it means that the units are asked.
fn address_ranges(dwarf: &Dwarf<Slice<'_>>) -> FxHashMap<usize, Vec<(u64, u64)>> {
    let mut listed: FxHashMap<usize, Vec<(u64, u64)>> = FxHashMap::default();
    let mut headers = dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let mut entries = header.entries();
        while let Ok(Some(entry)) = entries.next() {
            let range = entry.range();
            if range.begin < range.end {
                let ranges = listed.entry(header.debug_info_offset().0).or_default();
                ranges.push((range.begin, range.end));
            }
        }
    }
    listed
}
