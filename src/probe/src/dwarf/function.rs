//! The functions of a unit, and the places where they were inlined.

use std::cell::OnceCell;

use gimli::UnitOffset;

use super::die::Die;
use super::head::{Head, Heads, MAX_ORIGINS};
use super::world::World;

/// The functions of a unit in the order of their entries.
#[derive(Debug)]
pub(crate) struct Functions<'w, 'u> {
    world: &'w World<'u>,
    heads: Vec<Head<'u>>,
    code: OnceCell<Vec<Stretch>>,
}

/// Code of a function.
#[derive(Debug)]
struct Stretch {
    start: u64,
    end: u64,
    /// The highest end of this stretch and those before it.
    reach: u64,
    function: UnitOffset,
}

impl<'w, 'u> Functions<'w, 'u> {
    /// Reads the names of all functions, and little else. What comes before damage is kept.
    pub(crate) fn read(world: &'w World<'u>) -> Self {
        Self {
            world,
            heads: Heads::of(world).collect(),
            code: OnceCell::new(),
        }
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
        for _ in 0..MAX_ORIGINS {
            if head.has_name(wanted) {
                return true;
            }
            match head.origin.and_then(|origin| self.head(origin)) {
                Some(origin) => head = origin,
                None => return false,
            }
        }
        false
    }

    fn head(&self, offset: UnitOffset) -> Option<&Head<'u>> {
        let at = self
            .heads
            .binary_search_by_key(&offset.0, |head| head.offset.0);
        self.heads.get(at.ok()?)
    }

    /// The function whose code is at `address`; of several the first.
    pub(crate) fn around(&self, address: u64) -> Option<Die<'w, 'u>> {
        let code = self.code.get_or_init(|| self.stretches());
        let behind = code.partition_point(|stretch| stretch.start <= address);
        let before = code.get(..behind).unwrap_or_default().iter().rev();
        let reaching = before.take_while(|stretch| stretch.reach > address);
        let around = reaching.filter(|stretch| stretch.end > address);
        let first = around.map(|stretch| stretch.function.0).min()?;
        self.world.at(UnitOffset(first))
    }

    /// The code of all functions, by its start.
    fn stretches(&self) -> Vec<Stretch> {
        let all = self.with_code().flat_map(|die| {
            let function = die.offset();
            let stretch = move |(start, end)| Stretch {
                start,
                end,
                reach: 0,
                function,
            };
            die.ranges().into_iter().map(stretch)
        });
        let mut found: Vec<Stretch> = all.collect();
        found.sort_unstable_by_key(|stretch| stretch.start);
        let mut reach = 0;
        for stretch in &mut found {
            reach = stretch.end.max(reach);
            stretch.reach = reach;
        }
        found
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
