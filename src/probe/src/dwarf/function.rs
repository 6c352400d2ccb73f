//! The functions of a unit, and the places where they were inlined.

use std::cell::OnceCell;

use gimli::{DwTag, UnitOffset};
use rperf_symbol::dwarf::{FunctionEntries, Origin, WantedNames};
use rustc_hash::FxHashMap;

use super::die::Die;
use super::world::World;

/// The functions of a unit in the order of their entries.
#[derive(Debug)]
pub(crate) struct Functions<'w, 'u> {
    world: &'w World<'u>,
    found: FunctionEntries,
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
    /// Reads little of all functions, and the names of none. What comes before damage is kept.
    pub(crate) fn read(world: &'w World<'u>) -> Self {
        Self {
            world,
            found: world.function_entries(None),
            code: OnceCell::new(),
        }
    }

    /// The same, to tell those whose name in the source or for the linker is one that `is_name` says yes to: the names that
    /// units were sifted by, if they were.
    pub(crate) fn with_names(world: &'w World<'u>, is_name: &dyn Fn(&str) -> bool) -> Self {
        let is_elsewhere = |offset| {
            let die = world.at(offset);
            let names = die.map(|die| [die.name(), die.linkage_name()]);
            names.is_some_and(|names| names.iter().flatten().any(|name| is_name(name)))
        };
        let wanted = WantedNames {
            is_name,
            known: world.known,
            is_elsewhere: &is_elsewhere,
        };
        Self {
            world,
            found: world.function_entries(Some(wanted)),
            code: OnceCell::new(),
        }
    }

    /// The functions with code or inlined instances that have such a name.
    pub(crate) fn named(&self) -> impl Iterator<Item = Die<'w, 'u>> {
        let named = self.found.named.iter();
        named.filter_map(|offset| self.world.at(*offset))
    }

    /// All functions that have code of their own.
    pub(crate) fn with_code(&self) -> impl Iterator<Item = Die<'w, 'u>> {
        let defined = self.found.with_code.iter();
        let dies = defined.filter_map(|offset| self.world.at(*offset));
        dies.filter(|die| die.entry_address().is_some())
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

/// Copies of some functions in the code of a unit.
pub(crate) struct Copies<'w, 'u> {
    world: &'w World<'u>,
    /// Where the function is among those that were asked for, and the copy in the unit; in the order of the latter.
    found: Vec<(usize, UnitOffset)>,
}

impl<'w, 'u> Copies<'w, 'u> {
    /// Looks for the places where `functions` were inlined, and for the copies of their own that they have.
    pub(crate) fn of(world: &'w World<'u>, functions: &[Die<'w, 'u>]) -> Self {
        let here = functions.iter().enumerate();
        let here = here.filter_map(|(at, die)| Some((die.offset_here()?, at)));
        let here: FxHashMap<UnitOffset, usize> = here.collect();
        let elsewhere = |offset| {
            let origin = world.at(offset)?.reference(gimli::DW_AT_abstract_origin)?;
            functions.iter().position(|die| die.is_same(&origin))
        };
        let mut found = Vec::new();
        let mut take = |offset, origin| {
            let of = match origin {
                Origin::Here(origin) => here.get(&origin).copied(),
                Origin::Elsewhere => elsewhere(offset),
            };
            found.extend(of.map(|of| (of, offset)));
        };
        if let Some(skim) = world.skim(&is_function_or_copy) {
            skim.for_each_copy(&mut take);
        }
        Self { world, found }
    }

    /// Those of the function at this place among the ones that were asked for.
    pub(crate) fn at(&self, place: usize) -> impl Iterator<Item = Die<'w, 'u>> {
        let own = self.found.iter().filter(move |(of, _)| *of == place);
        own.filter_map(|(_, offset)| self.world.at(*offset))
    }
}

/// What is within a function.
pub(crate) struct Instances;

impl Instances {
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
