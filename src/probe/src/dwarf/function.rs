//! The functions of a unit, and the inlined and out-of-line instances of functions.

use std::cell::OnceCell;

use gimli::{DwTag, UnitOffset};
use rperf_symbol::dwarf::{DieReference, FunctionEntries, WantedNames};
use rustc_hash::FxHashMap;

use super::compile_unit::CompileUnit;
use super::die::Die;

/// The functions of a unit that have code or a wanted name, in the order of their DIEs.
#[derive(Debug)]
pub(crate) struct Functions<'w, 'u> {
    compile_unit: &'w CompileUnit<'u>,
    entries: FunctionEntries,
    /// The address ranges of the functions with code, sorted by start; computed on demand.
    code: OnceCell<Vec<FunctionRange>>,
}

/// An address range of a function.
#[derive(Debug)]
struct FunctionRange {
    start: u64,
    end: u64,
    /// The maximum end of this range and those before it.
    reach: u64,
    function: UnitOffset,
}

impl<'w, 'u> Functions<'w, 'u> {
    /// Finds the functions with code, but none by name: [`with_wanted_name`](Self::with_wanted_name) returns none. If the unit
    /// is damaged, the functions before the damage are found.
    pub(crate) fn read(compile_unit: &'w CompileUnit<'u>) -> Self {
        let wanted_names = None;
        Self {
            compile_unit,
            entries: compile_unit.function_entries(wanted_names),
            code: OnceCell::new(),
        }
    }

    /// Finds the functions with code, and those whose source or linkage name passes `is_name`. If the unit was found by a filter
    /// for names, `is_name` must be the same filter: its cached results ([`CompileUnit::cached_names`]) are used here.
    pub(crate) fn with_names(
        compile_unit: &'w CompileUnit<'u>,
        is_name: &dyn Fn(&str) -> bool,
    ) -> Self {
        // For entries whose name may be in another unit.
        let has_wanted_name = |offset| {
            let die = compile_unit.at(offset);
            let names = die.map(|die| [die.name(), die.linkage_name()]);
            names.is_some_and(|names| names.iter().flatten().any(|name| is_name(name)))
        };
        let wanted = WantedNames {
            is_wanted: is_name,
            cached_names: compile_unit.cached_names,
            has_wanted_name: &has_wanted_name,
        };
        Self {
            compile_unit,
            entries: compile_unit.function_entries(Some(wanted)),
            code: OnceCell::new(),
        }
    }

    /// Returns the functions, except declarations, whose name passed `is_name` of [`with_names`](Self::with_names).
    pub(crate) fn with_wanted_name(&self) -> impl Iterator<Item = Die<'w, 'u>> {
        let named = self.entries.with_wanted_name.iter();
        named.filter_map(|offset| self.compile_unit.at(*offset))
    }

    /// Returns all functions with out-of-line code.
    pub(crate) fn with_code(&self) -> impl Iterator<Item = Die<'w, 'u>> {
        let defined = self.entries.with_code.iter();
        let dies = defined.filter_map(|offset| self.compile_unit.at(*offset));
        // Omits functions that the linker dropped (address 0), and those that only have a `DW_AT_ranges` without ranges.
        dies.filter(|die| die.entry_address().is_some())
    }

    /// Returns the function whose code contains `address`; of several, the first in the order of DIEs.
    pub(crate) fn containing(&self, address: u64) -> Option<Die<'w, 'u>> {
        let code = self.code.get_or_init(|| self.ranges());
        let after = code.partition_point(|range| range.start <= address);
        let before = code.get(..after).unwrap_or_default().iter().rev();
        let reaching = before.take_while(|range| range.reach > address);
        let around = reaching.filter(|range| range.end > address);
        let first = around.map(|range| range.function.0).min()?;
        self.compile_unit.at(UnitOffset(first))
    }

    /// Returns the address ranges of all functions with code, sorted by start.
    fn ranges(&self) -> Vec<FunctionRange> {
        let all = self.with_code().flat_map(|die| {
            let function = die.offset();
            let range = move |(start, end)| FunctionRange {
                start,
                end,
                // Set below, when the ranges are sorted.
                reach: 0,
                function,
            };
            die.ranges().into_iter().map(range)
        });
        let mut ranges: Vec<FunctionRange> = all.collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut reach = 0;
        for range in &mut ranges {
            reach = range.end.max(reach);
            range.reach = reach;
        }
        ranges
    }
}

/// The instances that one unit has of the requested functions. These functions may be in other units.
pub(crate) struct FunctionInstances<'w, 'u> {
    compile_unit: &'w CompileUnit<'u>,
    /// The index of the requested function, and the instance's offset; in the order of the instances' DIEs.
    instances: Vec<(usize, UnitOffset)>,
}

impl<'w, 'u> FunctionInstances<'w, 'u> {
    /// Finds the inlined and out-of-line instances whose abstract origin is one of the requested `functions`.
    pub(crate) fn of(compile_unit: &'w CompileUnit<'u>, functions: &[Die<'w, 'u>]) -> Self {
        let indexed = functions.iter().enumerate();
        let in_this_unit = indexed.filter_map(|(index, die)| Some((die.offset_here()?, index)));
        let in_this_unit: FxHashMap<UnitOffset, usize> = in_this_unit.collect();
        // The index of the requested function whose instance is at `offset`, if that function is in another unit.
        let index_of_origin_elsewhere = |offset| {
            let origin = compile_unit
                .at(offset)?
                .reference(gimli::DW_AT_abstract_origin)?;
            functions.iter().position(|die| die.is_same(&origin))
        };
        let mut instances = Vec::new();
        let mut add = |offset, origin| {
            let index = match origin {
                DieReference::SameUnit(origin) => in_this_unit.get(&origin).copied(),
                DieReference::OtherUnit => index_of_origin_elsewhere(offset),
            };
            instances.extend(index.map(|index| (index, offset)));
        };
        if let Some(scanner) = compile_unit.scanner(&is_function_or_instance) {
            scanner.for_each_instance(&mut add);
        }
        Self {
            compile_unit,
            instances,
        }
    }

    /// Returns the instances of the requested function with this index.
    pub(crate) fn of_function(&self, index: usize) -> impl Iterator<Item = Die<'w, 'u>> {
        let instances = self
            .instances
            .iter()
            .filter(move |(function, _)| *function == index);
        instances.filter_map(|(_, offset)| self.compile_unit.at(*offset))
    }
}

/// Finds inlined instances within a function.
pub(crate) struct InlinedInstances;

impl InlinedInstances {
    /// Returns the functions at `address` within `function`, from `function` itself to the innermost inlined one.
    pub(crate) fn at<'w, 'u>(function: &Die<'w, 'u>, address: u64) -> Vec<Die<'w, 'u>> {
        let mut functions = vec![function.clone()];
        function.walk(&mut |die| {
            let is_scope = matches!(
                die.tag(),
                gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_lexical_block
            );
            let covers = is_scope && die.covers(address);
            if covers && die.tag() == gimli::DW_TAG_inlined_subroutine {
                functions.push(die.clone());
            }
            // Whether to descend into this entry.
            covers
        });
        functions
    }
}

/// Whether the tag is that of a function or an inlined instance.
pub(crate) fn is_function_or_instance(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_inlined_subroutine | gimli::DW_TAG_subprogram
    )
}
