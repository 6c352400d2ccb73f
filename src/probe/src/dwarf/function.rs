//! The functions of a unit, and the places where they were inlined.

use std::collections::HashMap;

use gimli::{AttributeValue, EntriesRaw, UnitOffset};
use rperf_symbol::dwarf::Slice;

use super::die::Die;
use super::world::World;

/// What is read of a function's entry without reading anything else.
#[derive(Debug, Clone, Copy)]
struct Head<'u> {
    offset: UnitOffset,
    name: Option<Slice<'u>>,
    linkage_name: Option<Slice<'u>>,
    origin: Option<UnitOffset>,
    is_declaration: bool,
    /// Its names stand in another unit.
    is_foreign: bool,
}

/// The functions of a unit in the order of their entries.
#[derive(Debug)]
pub(crate) struct Functions<'w, 'u> {
    world: &'w World<'u>,
    heads: Vec<Head<'u>>,
    places: HashMap<UnitOffset, usize>,
}

impl<'w, 'u> Functions<'w, 'u> {
    /// Reads the names of all functions, and little else. What comes before damage is kept.
    pub(crate) fn read(world: &'w World<'u>) -> Self {
        let mut functions = Self {
            world,
            heads: Vec::new(),
            places: HashMap::new(),
        };
        if let Ok(mut entries) = world.home.unit.entries_raw(None) {
            while !entries.is_empty() && functions.step(&mut entries).is_ok() {}
        }
        functions
    }

    fn step(&mut self, entries: &mut EntriesRaw<'_, Slice<'u>>) -> gimli::Result<()> {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        if abbreviation.tag() != gimli::DW_TAG_subprogram {
            return entries.skip_attributes(abbreviation.attributes());
        }
        let unit = self.world.home.unit.unit_ref(self.world.home.dwarf);
        let mut head = Head {
            offset,
            name: None,
            linkage_name: None,
            origin: None,
            is_declaration: false,
            is_foreign: false,
        };
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
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
                _ => {}
            }
        }
        self.places.insert(offset, self.heads.len());
        self.heads.push(head);
        Ok(())
    }

    /// The functions with code or inlined instances whose name in the source or for the linker is one that `wanted` says
    /// yes to.
    pub(crate) fn named(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Die<'w, 'u>> {
        let defined = self.heads.iter().filter(|head| !head.is_declaration);
        let matching = defined.filter(|head| self.is_named(head, wanted));
        matching
            .filter_map(|head| self.world.at(head.offset))
            .collect()
    }

    /// All functions that have code of their own.
    pub(crate) fn with_code(&self) -> impl Iterator<Item = Die<'w, 'u>> {
        let defined = self.heads.iter().filter(|head| !head.is_declaration);
        let dies = defined.filter_map(|head| self.world.at(head.offset));
        dies.filter(|die| die.entry_address().is_some())
    }

    fn is_named(&self, head: &Head<'u>, wanted: &dyn Fn(&str) -> bool) -> bool {
        if head.is_foreign {
            let die = self.world.at(head.offset);
            let named = |die: &Die<'_, '_>| {
                let names = [die.name(), die.linkage_name()];
                names.iter().flatten().any(|name| wanted(name))
            };
            return die.is_some_and(|die| named(&die));
        }
        let mut head = head;
        // A copy of a completion of a declaration.
        for _ in 0..4 {
            let mut names = [head.name, head.linkage_name].into_iter().flatten();
            if names.any(|name| wanted(&name.to_string_lossy())) {
                return true;
            }
            let origin = head.origin.and_then(|origin| self.places.get(&origin));
            match origin.and_then(|place| self.heads.get(*place)) {
                Some(origin) => head = origin,
                None => return false,
            }
        }
        false
    }

    /// The function whose code is at `address`.
    pub(crate) fn around(&self, address: u64) -> Option<Die<'w, 'u>> {
        self.with_code().find(|die| die.covers(address))
    }
}

/// Copies of a function in the code of a unit.
pub(crate) struct Instances;

impl Instances {
    /// The places where `function` was inlined, and its copy of its own if it has one.
    pub(crate) fn of<'w, 'u>(world: &'w World<'u>, function: &Die<'w, 'u>) -> Vec<Die<'w, 'u>> {
        let mut found = Vec::new();
        let Some(root) = world.root() else {
            return found;
        };
        root.walk(&mut |die| {
            let is_copy = matches!(
                die.tag(),
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_subprogram
            );
            let origin = die.reference(gimli::DW_AT_abstract_origin);
            if is_copy && origin.is_some_and(|origin| origin.is_same(function)) {
                found.push(die.clone());
            }
            may_hold_code(die)
        });
        found
    }

    /// The functions at `address` within `function`, itself first and the innermost last.
    pub(crate) fn at<'w, 'u>(function: &Die<'w, 'u>, address: u64) -> Vec<Die<'w, 'u>> {
        let mut found = vec![function.clone()];
        function.walk(&mut |die| {
            let is_code = matches!(
                die.tag(),
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block
            );
            let covers = is_code && die.covers(address);
            if covers && die.tag() == gimli::DW_TAG_inlined_subroutine {
                found.push(die.clone());
            }
            covers
        });
        found
    }
}

/// Whether functions or parts of their code may stand below an entry.
fn may_hold_code(die: &Die<'_, '_>) -> bool {
    matches!(
        die.tag(),
        gimli::DW_TAG_subprogram
            | gimli::DW_TAG_inlined_subroutine
            | gimli::DW_TAG_lexical_block
            | gimli::DW_TAG_namespace
            | gimli::DW_TAG_module
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
    )
}
