//! Basic blocks between branches, with the cycles counted by the processor.
//!
//! A branch record has the number of cycles since the previous branch, spent in the block from the
//! previous target to this branch's source. If blocks with different starts have the same end, the
//! longest one is used for all, as in Linux perf.

use std::cmp::{Ordering, Reverse};

use rperf_replay::{Fold, Sample, World};
use rperf_resolve::{AddressContext, Frame, Resolver, SourceLine, SymbolId};
use rperf_wire::BranchEntry;
use rustc_hash::FxHashMap;

use crate::properties::locate_anywhere;
use crate::select::{SampleTreatment, SelectSamples};

/// The blocks of all events.
pub struct Blocks<'a, 'w> {
    resolver: &'a Resolver<'w>,
    select: Option<&'a dyn SelectSamples>,
    /// Whether recorded branches are consecutive, because branches of all types were recorded: only then a target is the start of
    /// the next block.
    consecutive: bool,
    events: Vec<EventBlocks>,
}

/// The blocks of one event.
#[derive(Default)]
struct EventBlocks {
    /// The blocks by function and by the address of the branch that ends them.
    blocks: FxHashMap<(SymbolId, u64), BlockCounts>,
    /// As in [`BlockTable::total_cycles`].
    total_cycles: u64,
}

/// The executions of blocks with the same end.
#[derive(Clone, Copy)]
struct BlockCounts {
    /// The branch at the end.
    end: Frame,
    /// The lowest start address of the executions. The start of an execution is the target of the previous branch, if this
    /// target is in the same function at a lower address than `end`. `None` if no execution has a start, or if recorded
    /// branches are not consecutive.
    start: Option<u64>,
    cycles: u64,
    executions: u64,
    first_cycles: FirstCycles,
}

/// The cycles of the first executions that began at the lowest start, in the order of the recording. If no start is known,
/// those of the first executions.
#[derive(Clone, Copy, Default)]
struct FirstCycles {
    cycles: [u64; Self::MAX],
    count: usize,
}

/// A block for display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Cycles of all executions.
    pub cycles: u64,
    /// Number of executions, at least 1.
    pub executions: u64,
    /// Start and end, as source lines or `FUNCTION+OFFSET`. An unknown start is shown as the start of the function.
    pub range: [String; 2],
    /// The object's short name.
    pub object: String,
    /// The function's name.
    pub function: String,
    /// Start and end as offsets in the function; an unknown start is 0.
    pub offsets: [u64; 2],
    /// The cycles of the first 8 executions that began at the lowest start, in the order of the recording. If no start is known,
    /// those of the first 8 executions.
    pub first_cycles: Vec<u64>,
}

/// The blocks of one event, sorted by cycles, descending.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlockTable {
    /// The blocks.
    pub blocks: Vec<Block>,
    /// Cycles of all branches of the selected samples, also of branches in functions that are unknown or not selected.
    pub total_cycles: u64,
}

impl BlockTable {
    /// Sum of the average cycles of all blocks.
    #[must_use]
    pub fn sum_of_averages(&self) -> u64 {
        self.blocks.iter().map(Block::average).sum()
    }
}

impl Block {
    /// Average number of cycles of an execution.
    #[must_use]
    pub fn average(&self) -> u64 {
        self.cycles / self.executions.max(1)
    }
}

impl<'a, 'w> Blocks<'a, 'w> {
    /// Creates an empty collection for samples accepted by `select`. `consecutive` means that branches of all types were
    /// recorded, so that a block starts at the target of the previous record.
    #[must_use]
    pub fn new(
        resolver: &'a Resolver<'w>,
        select: Option<&'a dyn SelectSamples>,
        consecutive: bool,
    ) -> Self {
        Self {
            resolver,
            select,
            consecutive,
            events: Vec::new(),
        }
    }

    /// Returns a table for each of `events` events, by index.
    #[must_use]
    pub fn tables(mut self, events: usize) -> Vec<BlockTable> {
        self.events.resize_with(events, EventBlocks::default);
        let tables = self.events.iter().map(|event| self.table(event));
        tables.collect()
    }

    fn table(&self, event: &EventBlocks) -> BlockTable {
        let mut blocks: Vec<_> = event.blocks.iter().collect();
        blocks.sort_unstable_by_key(|((symbol, end), counts)| {
            let name = self.resolver.symbol_name(*symbol);
            // As in perf, blocks with equal cycles are in descending order of the function's name, then by ascending address.
            let cycles = Reverse(counts.cycles);
            (cycles, Reverse(name), counts.start, *end, *symbol)
        });
        let blocks = blocks.into_iter();
        let blocks = blocks.map(|((symbol, _), counts)| self.block(*symbol, counts));
        BlockTable {
            blocks: blocks.collect(),
            total_cycles: event.total_cycles,
        }
    }

    fn block(&self, symbol: SymbolId, counts: &BlockCounts) -> Block {
        let end = counts.end;
        let function = self.resolver.symbol(symbol);
        let start = counts.start.or(function.map(|function| function.start));
        let start = start.unwrap_or(end.address);
        let length = end.address.wrapping_sub(start);
        let start = Frame {
            address: start,
            ip: end.ip.wrapping_sub(length),
            ..end
        };
        let world = self.resolver.world();
        Block {
            cycles: counts.cycles,
            executions: counts.executions,
            range: [self.location(symbol, &start), self.location(symbol, &end)],
            object: world.dso(symbol.dso).short_name.clone(),
            function: self.resolver.symbol_name(symbol).to_string(),
            offsets: [start, end].map(|frame| {
                let function = function.map_or(0, |function| function.start);
                frame.address.wrapping_sub(function)
            }),
            first_cycles: counts.first_cycles.cycles[..counts.first_cycles.count].to_vec(),
        }
    }

    /// The text of an address: the source line if known, otherwise function and offset.
    fn location(&self, symbol: SymbolId, frame: &Frame) -> String {
        let line = self.resolver.source_line(frame);
        if let Some(line) = line.filter(|line| *line != SourceLine::UNKNOWN) {
            return format!("{}:{}", line.file_name(), line.line);
        }
        let name = self.resolver.symbol_name(symbol);
        let function = self.resolver.symbol(symbol);
        let start = function.map_or(0, |function| function.start);
        format!("{name}+{}", frame.address.wrapping_sub(start))
    }

    fn is_counted(&self, world: &World, sample: &Sample<'_>) -> bool {
        let treatment = self.select.map(|select| select.sample(world, sample));
        treatment.is_none_or(|treatment| treatment == SampleTreatment::Counted)
    }

    /// Returns the function of a branch's source, and the source; `None` if the function is unknown or `select` does not
    /// accept it.
    fn end(&self, frame: Frame) -> Option<(SymbolId, Frame)> {
        let treatment = self
            .select
            .map(|select| select.frame(self.resolver, &frame));
        let is_counted = treatment.is_none_or(|treatment| treatment == SampleTreatment::Counted);
        Some((frame.symbol.filter(|_| is_counted)?, frame))
    }
}

impl Fold for Blocks<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        let Some(branches) = sample.wire.branch_stack else {
            return;
        };
        let branches: Vec<BranchEntry> = branches.iter().collect();
        // As in perf: if the processor counts no cycles for the newest branch, it counts none at
        // all.
        let has_cycles = branches.first().is_some_and(|newest| newest.cycles() > 0);
        if !has_cycles || !self.is_counted(world, sample) {
            return;
        }
        let at = AddressContext::of(sample);
        let event_index = sample.event.0 as usize;
        if self.events.len() <= event_index {
            self.events
                .resize_with(event_index + 1, EventBlocks::default);
        }
        let mut previous_target: Option<Frame> = None;
        for branch in branches.iter().rev() {
            let possible_start = previous_target;
            // A branch record has no CPU modes: its addresses are looked up in the kernel, then in user space, then in guests.
            previous_target = Some(locate_anywhere(self.resolver, at, branch.to));
            let cycles = branch.cycles();
            let end = self.end(locate_anywhere(self.resolver, at, branch.from));
            let Some(event) = self.events.get_mut(event_index) else {
                continue;
            };
            event.total_cycles = event.total_cycles.saturating_add(cycles);
            let Some((symbol, end)) = end.filter(|_| cycles > 0) else {
                continue;
            };
            let start = possible_start.filter(|start| {
                let is_before = start.address < end.address;
                self.consecutive && start.symbol == Some(symbol) && is_before
            });
            let counts = BlockCounts {
                end,
                start: start.map(|start| start.address),
                cycles,
                executions: 1,
                first_cycles: FirstCycles::of(cycles),
            };
            event.add(symbol, end.address, counts);
        }
    }

    fn merge(&mut self, later: Self) {
        let events = self.events.len().max(later.events.len());
        self.events.resize_with(events, EventBlocks::default);
        for (event, more) in self.events.iter_mut().zip(later.events) {
            event.total_cycles = event.total_cycles.saturating_add(more.total_cycles);
            for ((symbol, end), counts) in more.blocks {
                event.add(symbol, end, counts);
            }
        }
    }
}

impl EventBlocks {
    fn add(&mut self, symbol: SymbolId, end: u64, more: BlockCounts) {
        let key = (symbol, end);
        let counts = self.blocks.get_mut(&key);
        let Some(counts) = counts else {
            self.blocks.insert(key, more);
            return;
        };
        counts.cycles = counts.cycles.saturating_add(more.cycles);
        counts.executions += more.executions;
        // Unlike in the order of Option, None is last: an unknown start never replaces a known one.
        let sort_key = |start: Option<u64>| start.map_or((true, 0), |start| (false, start));
        match sort_key(more.start).cmp(&sort_key(counts.start)) {
            Ordering::Less => counts.first_cycles = more.first_cycles,
            Ordering::Equal => counts.first_cycles.append(&more.first_cycles),
            Ordering::Greater => {}
        }
        counts.start = match (counts.start, more.start) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

impl FirstCycles {
    /// Maximum number of executions: the number of bars that perf draws.
    const MAX: usize = 8;

    fn of(cycles: u64) -> Self {
        let mut first = Self::default();
        first.cycles[0] = cycles;
        first.count = 1;
        first
    }

    fn append(&mut self, later: &Self) {
        let free = self.cycles.iter_mut().skip(self.count);
        let more = later.cycles.iter().take(later.count);
        for (place, cycles) in free.zip(more) {
            *place = *cycles;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use rperf_replay::DsoId;
    use rperf_resolve::Level;
    use rperf_symbol::SymbolIndex;

    use super::*;

    #[test]
    fn the_longest_block_is_used_in_any_order() {
        let dso = DsoId(0);
        let index = SymbolIndex::new(1).expect("a small number");
        let symbol = SymbolId { dso, index };
        let end = Frame {
            ip: 0x140,
            mapping: None,
            dso: Some(dso),
            address: 0x140,
            symbol: Some(symbol),
            level: Level::User,
        };
        let counts = |start, cycles| BlockCounts {
            end,
            start,
            cycles,
            executions: 1,
            first_cycles: FirstCycles::of(cycles),
        };
        let mut seen = [(Some(0x120), 3), (None, 50), (Some(0x110), 7)];
        for _ in 0..seen.len() {
            seen.rotate_left(1);
            let mut event = EventBlocks::default();
            for (start, cycles) in seen {
                event.add(symbol, end.address, counts(start, cycles));
            }
            let sum = event.blocks[&(symbol, end.address)];
            assert_eq!(
                (sum.start, sum.cycles, sum.executions),
                (Some(0x110), 60, 3)
            );
            assert_eq!(sum.first_cycles.cycles[..sum.first_cycles.count], [7]);
        }
    }
}
