//! Overlapping symbols.

use std::sync::OnceLock;

use crate::symbol::{PackedSymbols, Symbol};
use crate::tree::{SearchTree, TreeChange};

/// The ranges of a table where several symbols overlap, and the tree that selects one of them:
/// perf's search tree, which is expensive to build and only built when an address in such a range
/// is looked up.
#[derive(Debug, Clone)]
pub(crate) struct OverlappingRanges {
    /// Start and end of each range, ascending.
    zones: Vec<(u64, u64)>,
    /// Starts of all symbols in order of insertion.
    starts: Vec<u64>,
    changes: Vec<TreeChange>,
    /// Maps insertion order to positions in the table.
    place: Vec<u32>,
    tree: OnceLock<SearchTree>,
}

impl OverlappingRanges {
    /// Finds the overlaps of a table; `None` if there are none. `inserted` are all symbols that
    /// were ever in it, `live` the positions of the remaining ones, by ascending start.
    pub(crate) fn new(
        inserted: &PackedSymbols,
        live: &[u32],
        changes: Vec<TreeChange>,
    ) -> Option<Self> {
        let zones = zones(live.iter().filter_map(|at| inserted.get(*at)));
        if zones.is_empty() {
            return None;
        }
        let mut place = vec![u32::MAX; inserted.len()];
        for (position, &inserted) in (0u32..).zip(live) {
            if let Some(slot) = place.get_mut(inserted as usize) {
                *slot = position;
            }
        }
        Some(Self {
            zones,
            starts: inserted.iter().map(|symbol| symbol.start).collect(),
            changes,
            place,
            tree: OnceLock::new(),
        })
    }

    /// The tree, if `address` is in an overlapping range.
    pub(crate) fn at(&self, address: u64) -> Option<&SearchTree> {
        let after = self.zones.partition_point(|(start, _)| *start <= address);
        let (start, end) = *self.zones.get(after.checked_sub(1)?)?;
        (address < end || address == start).then(|| self.tree())
    }

    pub(crate) fn tree(&self) -> &SearchTree {
        let replay = || SearchTree::replay(&self.starts, &self.changes, &self.place);
        self.tree.get_or_init(replay)
    }
}

/// Ranges of symbols that overlap each other.
fn zones(symbols: impl Iterator<Item = Symbol>) -> Vec<(u64, u64)> {
    let mut zones = Vec::new();
    let mut open: Option<(u64, u64, bool)> = None;
    for symbol in symbols {
        match &mut open {
            Some((start, end, several)) if symbol.start < *end || symbol.start == *start => {
                *end = symbol.end.max(*end);
                *several = true;
            }
            _ => {
                let last = open.replace((symbol.start, symbol.end, false));
                zones.extend(last.filter(|(.., several)| *several));
            }
        }
    }
    zones.extend(open.filter(|(.., several)| *several));
    zones
        .into_iter()
        .map(|(start, end, _)| (start, end))
        .collect()
}
