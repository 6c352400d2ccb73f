//! A hash map with slices as keys.

/// A map with slices as keys. All keys are in one buffer and all values in another, so that entries need no allocations of
/// their own.
#[derive(Debug)]
pub(crate) struct SliceMap<T, V> {
    keys: Vec<T>,
    entries: Vec<SliceEntry<V>>,
    /// Open addressing with linear probing; the length is a power of two.
    slots: Vec<SliceSlot>,
}

#[derive(Debug)]
struct SliceEntry<V> {
    /// End of the key in [`SliceMap::keys`]; it starts at the end of the previous one.
    end: usize,
    value: V,
}

/// Position of an entry, and the upper half of its hash, which also determines the preferred slot: the one where probing starts.
#[derive(Debug, Clone, Copy, Default)]
struct SliceSlot {
    /// The upper half of the hash that is passed to [`SliceMap::upsert`].
    hash: u32,
    /// The entry's index plus one; 0 if the slot is free.
    number: u32,
}

impl<T, V> Default for SliceMap<T, V> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            entries: Vec::new(),
            slots: Vec::new(),
        }
    }
}

impl<T: Copy + Eq, V> SliceMap<T, V> {
    /// Inserts `value` for `key` if the key is new; otherwise passes its value and `value` to `update`. Only the upper half of
    /// `hash` is used. Returns the index of the value.
    #[inline]
    pub(crate) fn upsert(
        &mut self,
        hash: u64,
        key: &[T],
        value: V,
        update: impl FnOnce(&mut V, &V),
    ) -> usize {
        // At most three quarters of the slots are used.
        if self.entries.len() >= self.slots.len() / 4 * 3 {
            self.grow();
        }
        let hash = (hash >> 32) as u32;
        let mut at = self.preferred_slot(hash);
        loop {
            let slot = self.slots[at];
            if slot.number == 0 {
                break;
            }
            let index = slot.number as usize - 1;
            if slot.hash == hash && self.key(index) == key {
                update(&mut self.entries[index].value, &value);
                return index;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.keys.extend_from_slice(key);
        let end = self.keys.len();
        self.entries.push(SliceEntry { end, value });
        let number = self.entries.len() as u32;
        self.slots[at] = SliceSlot { hash, number };
        self.entries.len() - 1
    }

    /// The value at an index.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut V> {
        self.entries.get_mut(index).map(|entry| &mut entry.value)
    }

    /// Approximate size in bytes.
    #[inline]
    pub(crate) fn byte_size(&self) -> usize {
        size_of_val(&*self.keys) + size_of_val(&*self.entries) + size_of_val(&*self.slots)
    }

    /// Removes all entries but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.slots.fill(SliceSlot::default());
    }

    /// Keys and values in order of insertion.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&[T], &V)> {
        let entries = self.entries.iter().enumerate();
        entries.map(|(index, entry)| (self.key(index), &entry.value))
    }

    fn key(&self, index: usize) -> &[T] {
        let start = index
            .checked_sub(1)
            .map_or(0, |previous| self.entries[previous].end);
        &self.keys[start..self.entries[index].end]
    }

    fn preferred_slot(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        const MIN_LEN: usize = 64;
        let len = MIN_LEN.max(self.slots.len() * 2);
        let old = std::mem::replace(&mut self.slots, vec![SliceSlot::default(); len]);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let mut at = self.preferred_slot(slot.hash);
            while self.slots[at].number != 0 {
                at = (at + 1) & (len - 1);
            }
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_match_the_standard_map(
            keys in prop::collection::vec(prop::collection::vec(0u32..3, 0..4), 0..300),
            weak in any::<bool>(),
        ) {
            let mut map = SliceMap::default();
            let mut expected: HashMap<&[u32], u64> = HashMap::new();
            for key in &keys {
                // A weak hash: most keys collide.
                let hash = if weak { key.len() as u64 } else { key.iter().fold(7, |hash, word| hash * 5 + u64::from(*word)) };
                map.upsert(hash << 32, key, 1, |sum, more| *sum += more);
                *expected.entry(key).or_default() += 1;
            }
            prop_assert_eq!(map.iter().len(), expected.len());
            let counted: HashMap<&[u32], u64> = map.iter().map(|(key, sum)| (key, *sum)).collect();
            prop_assert_eq!(counted, expected);
        }
    }
}
