//! A map that keeps the order in which keys were first seen.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Values by key, in the order in which the keys were first used.
#[derive(Debug, Clone)]
pub struct FirstSeen<K, V> {
    /// The index of each key in `entries`.
    places: FxHashMap<K, usize>,
    entries: Vec<(K, V)>,
}

impl<K, V> Default for FirstSeen<K, V> {
    fn default() -> Self {
        Self {
            places: FxHashMap::default(),
            entries: Vec::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, V: Default> FirstSeen<K, V> {
    /// Returns the value of `key`. A new key has the default value.
    pub fn entry<Q>(&mut self, key: &Q) -> &mut V
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let place = match self.places.get(key) {
            Some(place) => *place,
            None => {
                let place = self.entries.len();
                self.places.insert(key.to_owned(), place);
                self.entries.push((key.to_owned(), V::default()));
                place
            }
        };
        &mut self.entries[place].1
    }

    /// Returns the keys with their values, in the order in which the keys were first used.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.places.clear();
        self.entries.clear();
    }
}

impl<K: Ord + Copy> FirstSeen<K, u64> {
    /// Returns keys and counts, the largest count first. Of two keys with the same count, the larger one comes first,
    /// as in perf's scripts.
    #[must_use]
    pub fn by_count(&self) -> Vec<(K, u64)> {
        let mut rows: Vec<(K, u64)> = self.entries.clone();
        rows.sort_by_key(|&(key, count)| std::cmp::Reverse((count, key)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order() {
        let mut counts: FirstSeen<i64, u64> = FirstSeen::default();
        for key in [5, 9, 5, 7, 9, 1] {
            *counts.entry(&key) += 1;
        }
        let keys: Vec<i64> = counts.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, [5, 9, 7, 1]);
        assert_eq!(counts.by_count(), [(9, 2), (5, 2), (7, 1), (1, 1)]);
    }
}
