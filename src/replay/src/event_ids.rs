//! Lookup of events by their ids.

use rustc_hash::FxHashMap;

use crate::EventIndex;

/// Maps ids to events. The kernel numbers all counters consecutively, so the ids of a recording are usually in a small
/// range and need no hashing.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventIds {
    /// The lowest id; 0 if the range is large.
    first: u64,
    /// The events of the ids from `first` on; [`NO_EVENT`] for an id without one. Empty if the range is large.
    dense: Vec<u32>,
    /// All ids, if the range is large, otherwise empty.
    sparse: FxHashMap<u64, EventIndex>,
}

/// Marks an id without an event.
const NO_EVENT: u32 = u32::MAX;
/// Size of a range that is always small enough.
const SMALL_RANGE: u64 = 4096;
/// A larger range is small enough, too, if it has at most this many numbers per id.
const MAX_SPARSENESS: u64 = 16;

impl EventIds {
    /// Creates the lookup of `ids`. If an id has several events, the last one applies.
    pub(crate) fn new(ids: impl Iterator<Item = (u64, EventIndex)>) -> Self {
        let sparse: FxHashMap<u64, EventIndex> = ids.collect();
        let first = sparse.keys().min().copied().unwrap_or_default();
        let last = sparse.keys().max().copied().unwrap_or_default();
        let max_range = SMALL_RANGE.max(MAX_SPARSENESS.saturating_mul(sparse.len() as u64));
        if sparse.is_empty() || last - first >= max_range {
            return Self {
                sparse,
                ..Self::default()
            };
        }
        let event_of = |id| sparse.get(&id).map_or(NO_EVENT, |event| event.0);
        Self {
            first,
            dense: (first..=last).map(event_of).collect(),
            sparse: FxHashMap::default(),
        }
    }

    /// The event with this id; `None` if no event has it.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<EventIndex> {
        let place = usize::try_from(id.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        match self.dense.get(place) {
            Some(event) => (*event != NO_EVENT).then_some(EventIndex(*event)),
            // Either the range is large: `sparse` has all ids. Or it is small and the id is outside it: `sparse` is empty.
            None => self.of_sparse(id),
        }
    }

    #[cold]
    fn of_sparse(&self, id: u64) -> Option<EventIndex> {
        self.sparse.get(&id).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..40,
            5000u64..5040,
            u64::MAX - 20..=u64::MAX,
            any::<u64>()
        ]
    }

    proptest! {
        #[test]
        fn lookups_match_a_hash_map(
            ids in prop::collection::vec((id(), 0u32..5), 0..30),
            near in prop::collection::vec((0u64..3000, 0u32..5), 0..30),
            others in prop::collection::vec(id(), 0..30),
        ) {
            for ids in [ids, near] {
                let ids: Vec<_> = ids.into_iter().map(|(id, event)| (id, EventIndex(event))).collect();
                let expected: FxHashMap<u64, EventIndex> = ids.iter().copied().collect();
                let table = EventIds::new(ids.iter().copied());
                for id in ids.iter().map(|(id, _)| *id).chain(others.iter().copied()) {
                    for id in [id, id.wrapping_add(1), id.wrapping_sub(1)] {
                        prop_assert_eq!(table.get(id), expected.get(&id).copied());
                    }
                }
            }
        }
    }
}
