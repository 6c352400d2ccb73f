//! The functions and inlined functions of one unit as a flat table: each address has one innermost
//! function, each inlined function its call site.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gimli::{Abbreviation, AttributeValue, EntriesRaw, UnitOffset, UnitRef};

use super::ranges::{RangeAttributes, for_each_range};
use super::sections::Slice;

/// Marks addresses without a function, functions without a caller, and calls without a file.
const NONE: u32 = u32::MAX;

/// A function's code, or one inlined instance.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnitFunction {
    /// Its entry in the unit.
    pub(super) entry: UnitOffset,
    /// Index of the function that this one is inlined into; [`NONE`] for a function with its own code.
    caller: u32,
    /// Index of the call's file in the unit's file table; [`NONE`] if not given: 0 is a file since DWARF 5.
    pub(super) call_file: u32,
    /// Line of the call; 0 if not given.
    pub(super) call_line: u32,
}

/// The functions of one unit.
#[derive(Debug, Default)]
pub(super) struct UnitFunctions {
    functions: Vec<UnitFunction>,
    /// Start addresses of code ranges, ascending, each with its innermost function or [`NONE`].
    ranges: Vec<(u64, u32)>,
}

/// An address range of a function.
#[derive(Debug, Clone, Copy)]
struct FunctionRange {
    start: u64,
    end: u64,
    /// Number of enclosing functions: not the depth in the tree of entries, where lexical blocks count, too.
    depth: u32,
    /// Index of the function.
    function: u32,
}

impl UnitFunctions {
    /// Reads the entries of `unit`. Stops at damaged entries.
    pub(super) fn read(unit: UnitRef<'_, Slice<'_>>) -> Self {
        let mut reader = EntryReader {
            unit,
            functions: Vec::new(),
            covers: Vec::new(),
            open: Vec::new(),
        };
        if let Ok(mut entries) = unit.entries_raw(None) {
            while !entries.is_empty() && reader.step(&mut entries).is_ok() {}
        }
        let mut functions = reader.functions;
        functions.shrink_to_fit();
        Self {
            functions,
            ranges: flatten(reader.covers),
        }
    }

    /// The functions at `address`, innermost first; the last one is not inlined.
    pub(super) fn find(&self, address: u64) -> impl Iterator<Item = &UnitFunction> {
        let after = self.ranges.partition_point(|&(start, _)| start <= address);
        let innermost = after
            .checked_sub(1)
            .and_then(|index| self.ranges.get(index));
        let innermost = innermost.and_then(|&(_, function)| self.function(function));
        std::iter::successors(innermost, |function| self.function(function.caller))
    }

    /// The function with this index; `None` for [`NONE`]. Callers precede their inlined functions, so following them terminates.
    fn function(&self, index: u32) -> Option<&UnitFunction> {
        self.functions.get(index as usize)
    }

    /// Size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        self.functions.capacity() * size_of::<UnitFunction>()
            + self.ranges.capacity() * size_of::<(u64, u32)>()
    }
}

/// State of reading a unit's entries.
struct EntryReader<'u, 'a> {
    unit: UnitRef<'u, Slice<'a>>,
    functions: Vec<UnitFunction>,
    /// The ranges of all functions as read: those of nested functions overlap.
    covers: Vec<FunctionRange>,
    /// The functions that enclose the next entry: depth of the function's entry in the tree of entries, and the function's index.
    open: Vec<(isize, u32)>,
}

impl<'a> EntryReader<'_, 'a> {
    /// Reads one entry.
    fn step(&mut self, entries: &mut EntriesRaw<'_, Slice<'a>>) -> gimli::Result<()> {
        let offset = entries.next_offset();
        let depth = entries.next_depth();
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        while self.open.pop_if(|(opened, _)| *opened >= depth).is_some() {}
        let inlined = match abbreviation.tag() {
            gimli::DW_TAG_subprogram => false,
            gimli::DW_TAG_inlined_subroutine => true,
            _ => return entries.skip_attributes(abbreviation.attributes()),
        };
        let index = u32::try_from(self.functions.len()).unwrap_or(NONE);
        let enclosing = self.open.last().map(|&(_, function)| function);
        let function = UnitFunction {
            entry: offset,
            caller: enclosing.filter(|_| inlined).unwrap_or(NONE),
            call_file: NONE,
            call_line: 0,
        };
        self.read_attributes(entries, abbreviation, function, index)?;
        if abbreviation.has_children() {
            self.open.push((depth, index));
        }
        Ok(())
    }

    /// Reads the attributes of `function`, and adds it and its address ranges.
    fn read_attributes(
        &mut self,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        abbreviation: &Abbreviation,
        mut function: UnitFunction,
        index: u32,
    ) -> gimli::Result<()> {
        let mut attributes = RangeAttributes::default();
        for &spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(spec)?;
            match attribute.name() {
                gimli::DW_AT_call_file => {
                    if let AttributeValue::FileIndex(file) = attribute.value() {
                        function.call_file = u32::try_from(file).unwrap_or(NONE);
                    }
                }
                gimli::DW_AT_call_line => {
                    let line = attribute.udata_value().unwrap_or(0);
                    function.call_line = u32::try_from(line).unwrap_or(0);
                }
                name => attributes.take(self.unit, name, attribute.value())?,
            }
        }
        self.functions.push(function);
        let depth = u32::try_from(self.open.len()).unwrap_or(NONE);
        for_each_range(self.unit, &attributes, |start, end| {
            self.covers.push(FunctionRange {
                start,
                end,
                depth,
                function: index,
            });
        })
    }
}

/// Computes the innermost function of each address range. If functions of equal depth overlap
/// because of damage or folded code, the shorter range takes precedence, then the function whose entry is later.
fn flatten(mut covers: Vec<FunctionRange>) -> Vec<(u64, u32)> {
    covers.sort_unstable_by_key(|cover| (cover.start, cover.depth, cover.function));
    let mut sweep = AddressSweep::default();
    for cover in covers {
        sweep.advance(cover.start);
        let rank = (
            cover.depth,
            Reverse(cover.end - cover.start),
            cover.function,
        );
        sweep.active.push((rank, cover.end));
        sweep.mark(cover.start);
    }
    sweep.advance(u64::MAX);
    sweep.done.shrink_to_fit();
    sweep.done
}

/// Precedence of functions at the same address: greatest depth, then shortest range, then greatest index.
type RangePrecedence = (u32, Reverse<u64>, u32);

/// A sweep over addresses.
#[derive(Default)]
struct AddressSweep {
    /// The result up to the current address, as [`UnitFunctions::ranges`].
    done: Vec<(u64, u32)>,
    /// Functions at the current address, and possibly some that ended before; with their ends.
    active: BinaryHeap<(RangePrecedence, u64)>,
}

impl AddressSweep {
    /// Removes the innermost functions that end at or before `address`, and starts a range where each ends.
    fn advance(&mut self, address: u64) {
        while let Some(&(_, end)) = self.active.peek()
            && end <= address
        {
            // Also removes functions that ended earlier, while a more deeply nested one covered them.
            while self.active.peek().is_some_and(|&(_, other)| other <= end) {
                self.active.pop();
            }
            self.mark(end);
        }
    }

    /// Starts a range at `address` with the innermost active function.
    fn mark(&mut self, address: u64) {
        let function = self
            .active
            .peek()
            .map_or(NONE, |&((_, _, function), _)| function);
        match self.done.last_mut() {
            Some(last) if last.0 == address => last.1 = function,
            Some(last) if last.1 == function => {}
            _ => self.done.push((address, function)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The innermost function at `address` by linear search.
    fn naive(covers: &[FunctionRange], address: u64) -> u32 {
        let inside = covers
            .iter()
            .filter(|c| (c.start..c.end).contains(&address));
        let best = inside.max_by_key(|c| (c.depth, Reverse(c.end - c.start), c.function));
        best.map_or(NONE, |cover| cover.function)
    }

    proptest! {
        #[test]
        fn the_sweep_equals_a_search(raw in prop::collection::vec((0u64..60, 1u64..40, 0u32..4), 0..24)) {
            let covers: Vec<FunctionRange> = raw
                .iter()
                .enumerate()
                .map(|(index, &(start, len, depth))| FunctionRange {
                    start,
                    end: start + len,
                    depth,
                    function: index as u32,
                })
                .collect();
            let ranges = flatten(covers.clone());
            prop_assert!(ranges.windows(2).all(|pair| pair[0].0 < pair[1].0));
            // The last range ends at 98 (59 + 39) at most; no function is found after it.
            for address in 0..110 {
                let after = ranges.partition_point(|&(start, _)| start <= address);
                let found = after.checked_sub(1).map_or(NONE, |index| ranges[index].1);
                prop_assert_eq!(found, naive(&covers, address), "address {}", address);
            }
        }
    }
}
