//! What is read of a function's entry without reading anything else, to find one by its name.

use gimli::{AttributeValue, EntriesRaw, UnitOffset};
use rperf_symbol::dwarf::{Mentioned, Slice};

use super::function::Functions;
use super::world::World;

/// How many entries there are from a copy of a completion of a declaration to the name.
pub(super) const MAX_ORIGINS: usize = 4;

/// The entry of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head<'u> {
    pub(super) offset: UnitOffset,
    name: Option<Slice<'u>>,
    linkage_name: Option<Slice<'u>>,
    pub(super) origin: Option<UnitOffset>,
    pub(super) is_declaration: bool,
    /// Its names stand in another unit.
    pub(super) is_foreign: bool,
    /// What follows the entries below it.
    sibling: Option<UnitOffset>,
}

impl Head<'_> {
    /// Whether a name that stands in the entry itself is a wanted one.
    pub(super) fn has_name(&self, wanted: &dyn Fn(&str) -> bool) -> bool {
        let mut names = [self.name, self.linkage_name].into_iter().flatten();
        names.any(|name| wanted(&name.to_string_lossy()))
    }
}

/// The functions of a unit, in the order of their entries, which is that of their offsets. Ends at damage.
pub(super) struct Heads<'w, 'u> {
    world: &'w World<'u>,
    entries: Option<EntriesRaw<'w, Slice<'u>>>,
    /// Where the entries are that are wanted, rising. What is below others is passed over where they say how far it goes.
    places: Option<&'w [UnitOffset]>,
}

impl<'w, 'u> Heads<'w, 'u> {
    /// All functions.
    pub(super) fn of(world: &'w World<'u>) -> Self {
        Self {
            world,
            entries: world.home.unit.entries_raw(None).ok(),
            places: None,
        }
    }

    /// Those whose entries have one of these places in them.
    fn at(world: &'w World<'u>, places: &'w [UnitOffset]) -> Self {
        Self {
            places: Some(places),
            ..Self::of(world)
        }
    }

    /// Reads the next entry, and says whether it is a function's.
    fn read(&mut self) -> Option<(Head<'u>, bool)> {
        let entries = self
            .entries
            .as_mut()
            .filter(|entries| !entries.is_empty())?;
        let mut head = Head {
            offset: entries.next_offset(),
            name: None,
            linkage_name: None,
            origin: None,
            is_declaration: false,
            is_foreign: false,
            sibling: None,
        };
        let Some(abbreviation) = entries.read_abbreviation().ok()? else {
            return Some((head, false));
        };
        let is_function = abbreviation.tag() == gimli::DW_TAG_subprogram;
        let may_be_passed = self.places.is_some() && abbreviation.has_children();
        if !is_function && !may_be_passed {
            entries.skip_attributes(abbreviation.attributes()).ok()?;
            return Some((head, false));
        }
        let unit = self.world.home.unit.unit_ref(self.world.home.dwarf);
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec).ok()?;
            let value = attribute.value();
            match attribute.name() {
                gimli::DW_AT_name => head.name = unit.attr_string(value).ok(),
                gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                    head.linkage_name = unit.attr_string(value).ok();
                }
                gimli::DW_AT_declaration => head.is_declaration = true,
                gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => match value {
                    AttributeValue::UnitRef(origin) => head.origin = Some(origin),
                    _ => head.is_foreign = true,
                },
                gimli::DW_AT_sibling => {
                    if let AttributeValue::UnitRef(sibling) = value {
                        head.sibling = Some(sibling);
                    }
                }
                _ => {}
            }
        }
        Some((head, is_function))
    }

    /// Whether a wanted place is from one offset to below the other.
    fn wants(&self, start: UnitOffset, end: UnitOffset) -> bool {
        let Some(places) = self.places else {
            return true;
        };
        let first = places.partition_point(|place| *place < start);
        places.get(first).is_some_and(|place| *place < end)
    }
}

impl<'u> Iterator for Heads<'_, 'u> {
    type Item = Head<'u>;

    fn next(&mut self) -> Option<Head<'u>> {
        loop {
            let (head, is_function) = self.read()?;
            let behind = self.entries.as_ref()?.next_offset();
            let beyond = head.sibling.filter(|sibling| *sibling > behind);
            if let Some(sibling) = beyond.filter(|sibling| !self.wants(behind, *sibling)) {
                self.entries = self.world.home.unit.entries_raw(Some(sibling)).ok();
            }
            if is_function && self.wants(head.offset, behind) {
                return Some(head);
            }
        }
    }
}

impl<'w, 'u> Functions<'w, 'u> {
    /// Whether [`named`](Self::named) would find something.
    pub(crate) fn any_named(world: &'w World<'u>, wanted: &dyn Fn(&str) -> bool) -> bool {
        // Most units lack the name, and are told by that.
        let may_be = |head: Head<'u>| head.is_foreign || head.has_name(wanted);
        Heads::of(world).any(may_be) && !Self::read(world).named(wanted).is_empty()
    }

    /// The same where it is known which entries may have the name.
    pub(crate) fn any_mentioned(
        world: &'w World<'u>,
        wanted: &dyn Fn(&str) -> bool,
        mentioned: &Mentioned<'_>,
    ) -> bool {
        let mut places = mentioned.places.clone();
        let mut declared: Vec<UnitOffset> = Vec::new();
        for _ in 0..MAX_ORIGINS {
            let mut found = Vec::new();
            for head in Heads::at(world, &places) {
                let is_copy = head.origin.is_some_and(|origin| declared.contains(&origin));
                if !is_copy && !head.has_name(wanted) {
                    continue;
                }
                if !head.is_declaration {
                    return true;
                }
                found.push(head.offset);
            }
            let copies = found
                .iter()
                .flat_map(|offset| mentioned.referring_to(*offset));
            places = copies.collect();
            places.sort_unstable();
            declared = found;
        }
        false
    }
}
