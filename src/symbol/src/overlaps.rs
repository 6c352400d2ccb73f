//! Where symbols overlap.

use std::sync::OnceLock;

use crate::symbol::{Symbol, Symbols};
use crate::tree::{SearchTree, TreeChange};

/// The places of a table where several symbols cover an address, and what decides between them: the shape of perf's tree,
/// which takes long to find out and is asked for only if an address falls on such a place.
#[derive(Debug, Clone)]
pub(crate) struct Overlaps {
    /// Start and end of each place, rising.
    zones: Vec<(u64, u64)>,
    /// Starts of all symbols in the order of insertion.
    starts: Vec<u64>,
    changes: Vec<TreeChange>,
    /// From there to positions in the table.
    place: Vec<u32>,
    tree: OnceLock<SearchTree>,
}

impl Overlaps {
    /// The overlaps of a table; `None` where there are none. `inserted` are all symbols that ever were in it, `live` the
    /// positions of those that remained, by rising start.
    pub(crate) fn new(inserted: &Symbols, live: &[u32], changes: Vec<TreeChange>) -> Option<Self> {
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

    /// The tree, if `address` is in one of the places.
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

/// Stretches that symbols make up which overlap each other.
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
