//! Values by CPU.

use rustc_hash::FxHashMap;

use crate::sched::MAX_CPUS;

/// CPU numbers below this are indexes of the vector. Others occur only in damaged recordings.
const VECTOR_CPUS: usize = MAX_CPUS as usize;

/// A value for each CPU. Numbers that no machine has are keys of a map, so that a damaged recording cannot make the vector huge.
#[derive(Debug)]
pub(crate) struct CpuTable<T> {
    cpus: Vec<Option<T>>,
    others: FxHashMap<u32, T>,
}

impl<T> Default for CpuTable<T> {
    fn default() -> Self {
        Self {
            cpus: Vec::new(),
            others: FxHashMap::default(),
        }
    }
}

impl<T> CpuTable<T> {
    /// Sets the value of a CPU and returns the previous one.
    #[inline]
    pub(crate) fn insert(&mut self, cpu: u32, value: T) -> Option<T> {
        match self.cpus.get_mut(cpu as usize) {
            Some(entry) => entry.replace(value),
            None => self.insert_beyond_end(cpu, value),
        }
    }

    /// Does what [`Self::insert`] does, for a CPU that the vector does not cover.
    #[cold]
    fn insert_beyond_end(&mut self, cpu: u32, value: T) -> Option<T> {
        let index = cpu as usize;
        if index >= VECTOR_CPUS {
            return self.others.insert(cpu, value);
        }
        self.cpus.resize_with(index, || None);
        self.cpus.push(Some(value));
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Small CPU numbers, numbers around `MAX_CPUS`, and the largest.
        #[test]
        fn previous_values_match_a_map(inserted in proptest::collection::vec(
            (prop_oneof![0u32..9, 8190u32..8195, Just(u32::MAX)], any::<u8>()),
            0..40,
        )) {
            let (mut table, mut map) = (CpuTable::default(), BTreeMap::new());
            for (cpu, value) in inserted {
                prop_assert_eq!(table.insert(cpu, value), map.insert(cpu, value));
            }
        }
    }
}
