//! Cache of what a predicate returns for strings of one section, most of which occur in several units.

/// Number of cached results, and size of the hash filter. A power of two.
const SLOTS: usize = 1 << 16;

/// Results by offset of the string.
#[derive(Debug, Clone)]
pub(super) enum NameCache {
    /// The result is true for exactly these offsets, which are ascending.
    Offsets {
        offsets: Vec<usize>,
        /// Indexed by [`hash`]: whether any of the offsets has this hash.
        hashes: Vec<bool>,
    },
    /// Direct-mapped cache: (offset + 1) * 2 + result; 0 in an empty slot.
    Slots(Vec<usize>),
}

impl Default for NameCache {
    fn default() -> Self {
        Self::Slots(vec![0; SLOTS])
    }
}

impl NameCache {
    /// Creates the cache of a predicate that accepts exactly the strings at these offsets, which must be ascending.
    pub(super) fn of_offsets(offsets: &[usize]) -> Self {
        let mut hashes = vec![false; SLOTS];
        for offset in offsets {
            if let Some(slot) = hashes.get_mut(hash(*offset)) {
                *slot = true;
            }
        }
        Self::Offsets {
            offsets: offsets.to_vec(),
            hashes,
        }
    }

    /// Creates a cache that stores nothing, for few strings: each result is computed.
    pub(super) fn disabled() -> Self {
        Self::Slots(Vec::new())
    }

    /// The result for the string at `at`, computed by `compute` if it isn't cached. With [`Self::Offsets`], all results are known
    /// and `compute` is never called.
    pub(super) fn get(&mut self, at: usize, compute: impl FnOnce() -> bool) -> bool {
        let slots = match self {
            Self::Offsets { offsets, hashes } => {
                return hashes.get(hash(at)) == Some(&true) && offsets.binary_search(&at).is_ok();
            }
            Self::Slots(slots) => slots,
        };
        let key = at.wrapping_add(1) << 1;
        let Some(slot) = slots.get_mut(hash(at)) else {
            return compute();
        };
        if *slot & !1 != key {
            *slot = key | usize::from(compute());
        }
        *slot & 1 == 1
    }
}

/// Returns the slot of an offset. The multiplication spreads strings that are only a few bytes apart over all slots.
fn hash(at: usize) -> usize {
    (at.wrapping_mul(0x9e37_79b9) >> 13) % SLOTS
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn results_are_cached_by_offset() {
        let mut known = NameCache::default();
        let calls = Cell::new(0);
        let mut get = |at: usize| {
            let compute = || {
                calls.set(calls.get() + 1);
                at.is_multiple_of(3)
            };
            known.get(at, compute)
        };
        for at in (0..4 * SLOTS).chain(0..4 * SLOTS) {
            assert_eq!(get(at), at.is_multiple_of(3), "{at}");
        }
        // Another offset with the same hash may have replaced the result for 3: it is computed once at most.
        let before = calls.get();
        assert!(get(3) && get(3));
        assert!(calls.get() <= before + 1);
    }

    #[test]
    fn only_listed_offsets_are_accepted() {
        let offsets: Vec<usize> = (0..3000).map(|offset| offset * 7).collect();
        let mut known = NameCache::of_offsets(&offsets);
        for at in 0..30_000_usize {
            let expected = at < 21_000 && at.is_multiple_of(7);
            assert_eq!(known.get(at, || unreachable!()), expected, "{at}");
        }
    }
}
