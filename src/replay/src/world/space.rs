//! One address space through time.
//!
//! There is no record for unmapping: a mapping hides what it covers of older ones, for as long as
//! it is not hidden itself. So "what is mapped at this address at that time" is "the latest mapping
//! put in before that time which covers the address". A segment tree over the borders of all
//! mappings answers that: each mapping sits in O(log n) nodes, and a lookup visits the O(log n)
//! nodes above one elementary interval. Nothing is ever split, trimmed or copied.

use super::recent::Span;
use crate::{MappingId, Order};

/// Number of an address space in the World.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SpaceId(pub(crate) u32);

/// Where a forked process got its first mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    pub(crate) space: SpaceId,
    /// Mappings of the parent from later on don't count.
    pub(crate) until: Order,
}

/// `mapping: None` says that nothing is there from now on.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    order: Order,
    mapping: Option<MappingId>,
}

impl Entry {
    fn covers(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }
}

/// The mappings of one process (or one kernel), oldest first, and the index over most of them.
#[derive(Debug, Default)]
pub(crate) struct Space {
    pub(crate) parent: Option<Parent>,
    /// How many ancestors a lookup may have to ask.
    pub(crate) depth: u32,
    entries: Vec<Entry>,
    index: Index,
}

impl Space {
    pub(crate) fn forked(parent: Option<Parent>, depth: u32) -> Self {
        Self {
            parent,
            depth,
            ..Self::default()
        }
    }

    /// Where mappings put in before `order` begin and end.
    pub(crate) fn borders(&self, order: Order) -> impl Iterator<Item = u64> + '_ {
        let before = self.entries.iter().take_while(move |at| at.order < order);
        before.flat_map(|at| [at.start, at.end])
    }

    /// Puts `mapping` over whatever was there. Orders must not fall.
    pub(crate) fn insert(&mut self, order: Order, range: (u64, u64), mapping: Option<MappingId>) {
        const NEW_ENTRIES: usize = 32;
        let (start, end) = range;
        if start >= end {
            return;
        }
        self.entries.push(Entry {
            start,
            end,
            order,
            mapping,
        });
        // Doubling keeps the work of rebuilding linear in the number of entries.
        if self.entries.len() >= 2 * self.index.entries + NEW_ENTRIES {
            self.reindex();
        }
    }

    /// All mappings that were put in, oldest first.
    pub(crate) fn inserted(&self) -> impl Iterator<Item = (Order, MappingId)> + '_ {
        let entries = self.entries.iter();
        entries.filter_map(|entry| Some((entry.order, entry.mapping?)))
    }

    /// Brings the index up to date.
    pub(crate) fn reindex(&mut self) {
        if self.index.entries != self.entries.len() {
            self.index = Index::new(&self.entries);
        }
    }

    /// Whether any mapping was put in before `order`.
    pub(crate) fn any_before(&self, order: Order) -> bool {
        self.entries
            .first()
            .is_some_and(|first| first.order < order)
    }

    /// How many mappings were put in before `order`.
    pub(crate) fn counted(&self, order: Order) -> usize {
        match self.entries.last() {
            Some(last) if last.order < order => self.entries.len(),
            _ => self.entries.partition_point(|entry| entry.order < order),
        }
    }

    /// [`Space::counted`], and where in the order it is the same.
    pub(crate) fn counted_span(&self, order: Order) -> (usize, Span) {
        let counted = self.counted(order);
        (
            counted,
            Span::at(&self.entries, counted, |entry| entry.order),
        )
    }

    /// What was put in over `address` last before `order`: `None` if nothing, `Some(None)` if it was
    /// taken away.
    pub(crate) fn lookup(&self, order: Order, address: u64) -> Option<Option<MappingId>> {
        let counted = self.counted(order);
        let fresh = self.entries.get(self.index.entries..counted);
        let fresh = fresh.unwrap_or_default().iter().rev();
        if let Some(entry) = fresh.into_iter().find(|entry| entry.covers(address)) {
            return Some(entry.mapping);
        }
        let found = self.index.latest(address, counted)?;
        self.entries.get(found).map(|entry| entry.mapping)
    }
}

/// A segment tree in the usual array form: node `n` has the children `2n` and `2n + 1`, leaves are
/// the elementary intervals. The entries of node `n` are `items[starts[n]..starts[n + 1]]`, rising.
#[derive(Debug, Default)]
struct Index {
    /// How many entries are in it: the first so many.
    entries: usize,
    borders: Vec<u64>,
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Index {
    fn new(entries: &[Entry]) -> Self {
        let mut borders: Vec<u64> = entries.iter().flat_map(|at| [at.start, at.end]).collect();
        borders.sort_unstable();
        borders.dedup();
        let mut index = Self {
            entries: entries.len(),
            starts: vec![0; 2 * borders.len() + 1],
            borders,
            items: Vec::new(),
        };
        // Count, sum up, then place: `starts` holds the ends meanwhile and comes down to the starts.
        let mut starts = std::mem::take(&mut index.starts);
        for entry in entries {
            index.nodes(entry, |node| {
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
            index.nodes(entry, |node| {
                let place = add(&mut starts, node, u32::MAX) as usize;
                if let Some(item) = items.get_mut(place) {
                    *item = u32::try_from(number).unwrap_or(u32::MAX);
                }
            });
        }
        index.starts = starts;
        index.items = items;
        index
    }

    fn leaves(&self) -> usize {
        self.borders.len()
    }

    /// Visits the nodes that together make up an entry's range.
    fn nodes(&self, entry: &Entry, mut visit: impl FnMut(usize)) {
        let leaf = |address| self.borders.partition_point(|&border| border < address);
        let (mut left, mut right) = (
            leaf(entry.start) + self.leaves(),
            leaf(entry.end) + self.leaves(),
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

    /// The latest among the first `counted` entries that covers `address`.
    fn latest(&self, address: u64, counted: usize) -> Option<usize> {
        let behind = self.borders.partition_point(|&border| border <= address);
        if behind == 0 || behind == self.borders.len() {
            return None;
        }
        let mut node = behind - 1 + self.leaves();
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

/// Adds to one of `counts` and returns the sum; `u32::MAX` counts as -1.
fn add(counts: &mut [u32], at: usize, amount: u32) -> u32 {
    counts.get_mut(at).map_or(0, |count| {
        *count = count.wrapping_add(amount);
        *count
    })
}

fn last_below(items: &[u32], limit: usize) -> Option<usize> {
    let last = *items.last()? as usize;
    if last < limit {
        return Some(last);
    }
    let count = items.partition_point(|&item| (item as usize) < limit);
    let item = items.get(count.checked_sub(1)?)?;
    Some(*item as usize)
}
