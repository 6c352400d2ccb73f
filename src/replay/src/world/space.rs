//! An address space over time.
//!
//! There is no record for munmap(2): a mapping overrides older ones at its addresses, until
//! overridden itself. So the mapping at an address at some time is the latest one inserted before
//! that time that covers the address. A segment tree over the boundaries of mappings finds it:
//! each mapping is in O(log n) nodes, and a lookup visits the O(log n) nodes above one elementary
//! interval. Mappings that are not in the tree yet are searched one by one. A new mapping never splits or trims older ones.

use std::ops::Range;

use super::thread_cache::OrderRange;
use crate::{MappingId, Order};

/// Index of an address space in the [`World`](super::World).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpaceId(pub(crate) u32);

/// The parent's mappings inherited by a forked process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InheritedMappings {
    pub(crate) space: SpaceId,
    /// Later mappings of the parent are not inherited.
    pub(crate) until: Order,
}

/// An insertion; `mapping: None` removes the mappings in its range, as when a KSYMBOL record unregisters code of the kernel.
#[derive(Debug, Clone, Copy)]
struct SpaceEntry {
    start: u64,
    end: u64,
    order: Order,
    mapping: Option<MappingId>,
}

impl SpaceEntry {
    fn covers(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// The mappings of one process (or one kernel), oldest first, and an index of the oldest ones.
#[derive(Debug, Default)]
pub(crate) struct MappingSpace {
    pub(crate) parent: Option<InheritedMappings>,
    /// Number of ancestors in the chain of parents when the space was created. [`super::WorldBuilder::finish`] may shorten the
    /// chain without changing this number.
    pub(crate) depth: u32,
    entries: Vec<SpaceEntry>,
    index: MappingIndex,
}

impl MappingSpace {
    pub(crate) fn forked(parent: InheritedMappings, depth: u32) -> Self {
        Self {
            parent: Some(parent),
            depth,
            ..Self::default()
        }
    }

    /// Boundaries of mappings inserted before `order`.
    pub(crate) fn borders(&self, order: Order) -> impl Iterator<Item = u64> + '_ {
        let before = self
            .entries
            .iter()
            .take_while(move |entry| entry.order < order);
        before.flat_map(|entry| [entry.start, entry.end])
    }

    /// Inserts `mapping`, overriding older ones; `None` removes those in `range`. Orders must not decrease.
    pub(crate) fn insert(&mut self, order: Order, range: Range<u64>, mapping: Option<MappingId>) {
        const MIN_UNINDEXED: usize = 32;
        if range.is_empty() {
            return;
        }
        self.entries.push(SpaceEntry {
            start: range.start,
            end: range.end,
            order,
            mapping,
        });
        // Rebuilding only after the number of entries has doubled limits the total work.
        if self.entries.len() >= 2 * self.index.entry_count + MIN_UNINDEXED {
            self.reindex();
        }
    }

    /// All inserted mappings, oldest first, including those removed later.
    pub(crate) fn inserted(&self) -> impl Iterator<Item = (Order, MappingId)> + '_ {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((entry.order, entry.mapping?)))
    }

    /// Rebuilds the index with all entries.
    pub(crate) fn reindex(&mut self) {
        if self.index.entry_count != self.entries.len() {
            self.index = MappingIndex::new(&self.entries);
        }
    }

    /// Whether there is any entry before `order`.
    pub(crate) fn any_before(&self, order: Order) -> bool {
        self.entries
            .first()
            .is_some_and(|first| first.order < order)
    }

    /// Number of entries before `order`, both those that insert a mapping and those that remove mappings.
    pub(crate) fn count_before(&self, order: Order) -> usize {
        match self.entries.last() {
            Some(last) if last.order < order => self.entries.len(),
            _ => self.entries.partition_point(|entry| entry.order < order),
        }
    }

    /// Like [`MappingSpace::count_before`], with the range of orders for which the number is the same.
    pub(crate) fn count_span(&self, order: Order) -> (usize, OrderRange) {
        let counted = self.count_before(order);
        (
            counted,
            OrderRange::at(&self.entries, counted, |entry| entry.order),
        )
    }

    /// The mapping of the last entry before `order` that covers `address`: `None` if there is no such
    /// entry, `Some(None)` if the entry removed the mapping.
    pub(crate) fn lookup(&self, order: Order, address: u64) -> Option<Option<MappingId>> {
        let counted = self.count_before(order);
        // `None` if even some entries of the index are not before `order`.
        let unindexed = self.entries.get(self.index.entry_count..counted);
        let mut newest_first = unindexed.unwrap_or_default().iter().rev();
        if let Some(entry) = newest_first.find(|entry| entry.covers(address)) {
            return Some(entry.mapping);
        }
        let latest = self.index.latest(address, counted)?;
        self.entries.get(latest).map(|entry| entry.mapping)
    }
}

/// A segment tree in the usual array form: node `n` has the children `2n` and `2n + 1`, leaves are
/// the elementary intervals. The numbers of the entries of node `n` are `items[starts[n]..starts[n + 1]]`, ascending.
#[derive(Debug, Default)]
struct MappingIndex {
    /// Number of entries in the index, which are the oldest.
    entry_count: usize,
    /// Boundaries of the elementary intervals, ascending.
    borders: Vec<u64>,
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl MappingIndex {
    fn new(entries: &[SpaceEntry]) -> Self {
        const MINUS_ONE: u32 = u32::MAX;
        let mut borders: Vec<u64> = entries
            .iter()
            .flat_map(|entry| [entry.start, entry.end])
            .collect();
        borders.sort_unstable();
        borders.dedup();
        let mut index = Self {
            entry_count: entries.len(),
            starts: vec![0; 2 * borders.len() + 1],
            borders,
            items: Vec::new(),
        };
        // Counting sort: `starts` has the number of items of each node, then the ends, which are decremented to the starts.
        let mut starts = std::mem::take(&mut index.starts);
        for entry in entries {
            index.visit_nodes(entry, |node| {
                add(&mut starts, node, 1);
            });
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut items = vec![0; sum as usize];
        for (number, entry) in entries.iter().enumerate().rev() {
            index.visit_nodes(entry, |node| {
                let place = add(&mut starts, node, MINUS_ONE) as usize;
                if let Some(item) = items.get_mut(place) {
                    *item = u32::try_from(number).unwrap_or(u32::MAX);
                }
            });
        }
        index.starts = starts;
        index.items = items;
        index
    }

    fn leaf_count(&self) -> usize {
        self.borders.len()
    }

    /// Visits the nodes that together cover exactly an entry's range.
    fn visit_nodes(&self, entry: &SpaceEntry, mut visit: impl FnMut(usize)) {
        let leaf = |address| self.borders.partition_point(|&border| border < address);
        let (mut left, mut right) = (
            leaf(entry.start) + self.leaf_count(),
            leaf(entry.end) + self.leaf_count(),
        );
        while left < right {
            if left % 2 == 1 {
                visit(left);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                visit(right);
            }
            left /= 2;
            right /= 2;
        }
    }

    /// The number of the latest among the first `counted` entries that covers `address`.
    fn latest(&self, address: u64, counted: usize) -> Option<usize> {
        let after = self.borders.partition_point(|&border| border <= address);
        if after == 0 || after == self.borders.len() {
            return None;
        }
        let mut node = after - 1 + self.leaf_count();
        let mut latest = None;
        while node > 0 {
            if let Some(item) = last_below(self.items_of(node), counted) {
                latest = latest.max(Some(item));
            }
            node /= 2;
        }
        latest
    }

    fn items_of(&self, node: usize) -> &[u32] {
        let starts = self.starts.get(node..node + 2);
        let Some(&[start, end]) = starts else {
            return &[];
        };
        let items = self.items.get(start as usize..end as usize);
        items.unwrap_or_default()
    }
}

/// Adds to an element of `counts` and returns the sum; `u32::MAX` means -1.
fn add(counts: &mut [u32], at: usize, amount: u32) -> u32 {
    counts.get_mut(at).map_or(0, |count| {
        *count = count.wrapping_add(amount);
        *count
    })
}

/// The last of the ascending `items` that is less than `limit`.
fn last_below(items: &[u32], limit: usize) -> Option<usize> {
    let last = *items.last()? as usize;
    if last < limit {
        return Some(last);
    }
    let count = items.partition_point(|&item| (item as usize) < limit);
    let item = items.get(count.checked_sub(1)?)?;
    Some(*item as usize)
}
