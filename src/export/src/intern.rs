//! Interning of items.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Distinct items in order of first appearance; the number of an item is its index.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of `item`, which is added if it is new.
    pub(crate) fn number(&mut self, item: T) -> u32 {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        // More than 2^32 items are not expected.
        let number = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(item.clone());
        self.numbers.insert(item, number);
        number
    }

    /// All items, by number.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Adds `later`, the items of the interner of a later part of the recording, and returns their numbers in this interner.
    /// An item can contain numbers of items of other interners; `renumber` replaces these by the numbers after the merge.
    pub(crate) fn merge(&mut self, later: &[T], renumber: impl Fn(&T) -> T) -> Vec<u32> {
        let items = later.iter().map(renumber);
        items.map(|item| self.number(item)).collect()
    }
}
