//! The functions of a unit, and the places where they were inlined.

use std::cell::OnceCell;

use gimli::{DwTag, UnitOffset};
use rperf_symbol::dwarf::{MAX_ORIGINS, Origin, Skim, Skimmed, Text};

use super::die::Die;
use super::world::World;

/// The functions of a unit in the order of their entries.
#[derive(Debug)]
pub(crate) struct Functions<'w, 'u> {
    world: &'w World<'u>,
    /// What reads the names. `None` where the unit is damaged.
    skim: Option<Skim<'u, 'u>>,
    heads: Vec<Head>,
    code: OnceCell<Vec<Stretch>>,
}

/// What is kept of a function's entry.
#[derive(Debug, Clone, Copy)]
struct Head {
    offset: UnitOffset,
    names: [Option<Text>; 2],
    origin: Option<Origin>,
    is_declaration: bool,
    has_addresses: bool,
}

impl From<Skimmed> for Head {
    fn from(entry: Skimmed) -> Self {
        Self {
            offset: entry.offset,
            names: entry.names,
            origin: entry.origin,
            is_declaration: entry.is_declaration,
            has_addresses: entry.has_addresses,
        }
    }
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
    /// Reads the heads of all functions. What comes before damage is kept.
    pub(crate) fn read(world: &'w World<'u>) -> Self {
        let mut skim = world.skim(&|tag| tag == gimli::DW_TAG_subprogram);
        let entries = skim.iter_mut().flatten();
        let functions = entries.filter(|entry| entry.tag == gimli::DW_TAG_subprogram);
        let heads = functions.map(Head::from).collect();
        Self {
            world,
            heads,
            skim,
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
        let heads = self.heads.iter();
        let defined = heads.filter(|head| !head.is_declaration && head.has_addresses);
        let dies = defined.filter_map(|head| self.world.at(head.offset));
        dies.filter(|die| die.entry_address().is_some())
    }

    fn is_named(&self, head: &Head, wanted: &dyn Fn(&str) -> bool) -> bool {
        let Some(skim) = &self.skim else {
            return false;
        };
        let mut head = head;
        // A copy of a completion of a declaration.
        for _ in 0..MAX_ORIGINS {
            if skim.has_name(&head.names, wanted) {
                return true;
            }
            match head.origin {
                Some(Origin::Here(origin)) => match self.head(origin) {
                    Some(origin) => head = origin,
                    None => return false,
                },
                Some(Origin::Elsewhere) => return self.is_named_elsewhere(head, wanted),
                None => return false,
            }
        }
        false
    }

    /// The same of a function whose name stands in another unit.
    fn is_named_elsewhere(&self, head: &Head, wanted: &dyn Fn(&str) -> bool) -> bool {
        let die = self.world.at(head.offset);
        let named = |die: &Die<'_, '_>| {
            let names = [die.name(), die.linkage_name()];
            names.iter().flatten().any(|name| wanted(name))
        };
        die.is_some_and(|die| named(&die))
    }

    fn head(&self, offset: UnitOffset) -> Option<&Head> {
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
        let is_copy = |entry: &Skimmed| match entry.origin.filter(|_| entry.is_copy) {
            Some(Origin::Here(origin)) => function.is_at(origin),
            Some(Origin::Elsewhere) => {
                let origin = world.at(entry.offset);
                let origin = origin.and_then(|die| die.reference(gimli::DW_AT_abstract_origin));
                origin.is_some_and(|origin| origin.is_same(function))
            }
            None => false,
        };
        let entries = world.skim(&is_function_or_copy).into_iter().flatten();
        let copies = entries.filter(|entry| is_function_or_copy(entry.tag) && is_copy(entry));
        copies.filter_map(|entry| world.at(entry.offset)).collect()
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

/// Whether an entry is of a function's code, its own or inlined.
pub(crate) fn is_function_or_copy(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_subprogram
    )
}
