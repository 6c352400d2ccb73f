//! Overlapping symbols.

use std::ops::Range;
use std::sync::OnceLock;

use crate::ties::{ComparedNames, TiedSymbols};
use crate::tree::{SearchTree, TreeChange};

/// The address ranges of a table where symbols overlap, and the tree that selects one of the symbols at an address: perf's
/// search tree, which is expensive to build and only built when an address in such a range is looked up.
#[derive(Debug, Clone)]
pub(crate) struct OverlappingRanges {
    /// Start and end of each range, ascending.
    ranges: Vec<(u64, u64)>,
    history: InsertionHistory,
    tree: OnceLock<SearchTree>,
}

/// How a table was built. A symbol's position in the order of insertion identifies it here.
#[derive(Debug, Clone)]
pub(crate) struct InsertionHistory {
    /// Starts of all symbols in order of insertion.
    pub(crate) starts: Vec<u64>,
    pub(crate) steps: Vec<InsertionStep>,
    /// The position in the table of each symbol. The symbols of a group of [`TiedSymbols`], which are at one address and of which
    /// perf keeps one, have the same position.
    pub(crate) place: Vec<u32>,
    /// The symbols of all groups of [`TiedSymbols`], in the same order as there.
    pub(crate) tied: Vec<u32>,
}

/// Symbols that were inserted together.
#[derive(Debug, Clone)]
pub(crate) struct InsertionStep {
    pub(crate) inserted: Range<u32>,
    /// Whether, after the insertion, all symbols of the table but one per address were dropped.
    pub(crate) drops_duplicates: bool,
}

impl OverlappingRanges {
    /// The overlaps of a table; `None` if there are none.
    pub(crate) fn new(
        finder: OverlapFinder,
        history: impl FnOnce() -> InsertionHistory,
    ) -> Option<Self> {
        let ranges = finder.finish();
        (!ranges.is_empty()).then(|| Self {
            ranges,
            history: history(),
            tree: OnceLock::new(),
        })
    }

    /// Whether `address` is in one of the ranges.
    pub(crate) fn covers(&self, address: u64) -> bool {
        let after = self.ranges.partition_point(|(start, _)| *start <= address);
        let range = after.checked_sub(1).and_then(|last| self.ranges.get(last));
        // A range may consist only of symbols without size at one address, which is then both its start and its end.
        range.is_some_and(|(start, end)| address < *end || address == *start)
    }

    /// The tree of the table. `tied` and `names` are those of the same table.
    pub(crate) fn tree(&self, tied: &TiedSymbols, names: ComparedNames<'_>) -> &SearchTree {
        self.tree.get_or_init(|| self.history.replay(tied, names))
    }
}

impl InsertionHistory {
    /// Builds the tree that results from the steps.
    fn replay(&self, tied: &TiedSymbols, names: ComparedNames<'_>) -> SearchTree {
        let dropped = self.dropped(tied, names);
        let mut place = self.place.clone();
        let mut changes = Vec::new();
        // Pairs (see `dropped`) whose loser has not been erased yet.
        let mut not_erased = dropped.as_slice();
        for step in &self.steps {
            changes.push(TreeChange::Insert(step.inserted.clone()));
            // If this step does not drop duplicates, those that it inserted stay until a later step drops them.
            let count = match step.drops_duplicates {
                true => not_erased.partition_point(|(cause, _)| *cause < step.inserted.end),
                false => 0,
            };
            let (erased, later) = not_erased.split_at(count);
            not_erased = later;
            for (_, loser) in erased {
                changes.push(TreeChange::Erase(*loser));
                if let Some(position) = place.get_mut(*loser as usize) {
                    // Not in the table.
                    *position = u32::MAX;
                }
            }
        }
        SearchTree::replay(&self.starts, &changes, &place)
    }

    /// Returns a pair (`cause`, `loser`) for each dropped symbol: of the two symbols that were compared, the one that was
    /// inserted later (possibly the dropped one itself), then the dropped symbol. Sorted by the step that inserted `cause`,
    /// then by address.
    fn dropped(&self, tied: &TiedSymbols, names: ComparedNames<'_>) -> Vec<(u32, u32)> {
        let mut dropped = Vec::new();
        let mut later_groups = self.tied.as_slice();
        for group in 0..tied.len() as u32 {
            let count = tied.members(group).count().min(later_groups.len());
            let (members, later) = later_groups.split_at(count);
            later_groups = later;
            let member = |at: usize| members.get(at).copied().unwrap_or_default();
            // Compares the symbols of the group; here `cause` and `loser` are positions in the group.
            names.kept(tied.members(group), |cause, loser| {
                dropped.push((member(cause), member(loser)));
            });
        }
        let step = |(cause, _): &(u32, u32)| {
            self.steps
                .partition_point(|step| step.inserted.end <= *cause)
        };
        dropped.sort_by_key(step);
        dropped
    }
}

/// Finds the ranges of symbols that overlap each other.
#[derive(Default)]
pub(crate) struct OverlapFinder {
    ranges: Vec<(u64, u64)>,
    open: Option<OpenRange>,
}

/// The last range, which the next symbol may extend.
struct OpenRange {
    start: u64,
    end: u64,
    /// Whether it consists of several symbols.
    overlaps: bool,
}

impl OverlapFinder {
    /// Adds a symbol, or a group of symbols at one address of which perf keeps one. Starts must be ascending. `end` is the
    /// highest end in a group: a range that is too long does no harm, as outside of overlaps the tree finds the same symbols as
    /// the sorted table.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        match &mut self.open {
            Some(open) if start < open.end || start == open.start => {
                open.end = open.end.max(end);
                open.overlaps = true;
            }
            _ => {
                self.close();
                self.open = Some(OpenRange {
                    start,
                    end,
                    overlaps: false,
                });
            }
        }
    }

    fn close(&mut self) {
        let last = self.open.take().filter(|last| last.overlaps);
        self.ranges.extend(last.map(|last| (last.start, last.end)));
    }

    fn finish(mut self) -> Vec<(u64, u64)> {
        self.close();
        self.ranges
    }
}
