//! Answers to questions about texts of one section, which most units have in common.

/// How many answers are kept, and how many bits tell most of the other places. A power of two.
const SLOTS: usize = 1 << 16;

/// Yes or no by the place of a text.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// The answer is yes at these places alone, which rise.
    Places {
        places: Vec<usize>,
        /// Whether a place with this hash is among them.
        hashes: Vec<bool>,
    },
    /// The last answers, where places share a slot: a place plus one, times two, and the answer.
    Slots(Vec<usize>),
}

impl Default for Known {
    fn default() -> Self {
        Self::Slots(vec![0; SLOTS])
    }
}

impl Known {
    /// Of these places, which rise.
    pub(super) fn of_places(places: &[usize]) -> Self {
        let mut hashes = vec![false; SLOTS];
        for place in places {
            if let Some(slot) = hashes.get_mut(hash(*place)) {
                *slot = true;
            }
        }
        Self::Places {
            places: places.to_vec(),
            hashes,
        }
    }

    /// Remembers nothing.
    pub(super) fn forgetful() -> Self {
        Self::Slots(Vec::new())
    }

    /// The answer about the text at `at`, which `ask` gives if it isn't known.
    pub(super) fn get(&mut self, at: usize, ask: impl FnOnce() -> bool) -> bool {
        let slots = match self {
            Self::Places { places, hashes } => {
                return hashes.get(hash(at)) == Some(&true) && places.binary_search(&at).is_ok();
            }
            Self::Slots(slots) => slots,
        };
        let key = at.wrapping_add(1) << 1;
        let Some(slot) = slots.get_mut(hash(at)) else {
            return ask();
        };
        if *slot & !1 != key {
            *slot = key | usize::from(ask());
        }
        *slot & 1 == 1
    }
}

/// Texts are a few bytes long: the lowest bits alone differ little.
fn hash(at: usize) -> usize {
    (at.wrapping_mul(0x9e37_79b9) >> 13) % SLOTS
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn answers_are_remembered_and_never_mixed_up() {
        let mut known = Known::default();
        let asked = Cell::new(0);
        let mut get = |at: usize| {
            let ask = || {
                asked.set(asked.get() + 1);
                at.is_multiple_of(3)
            };
            known.get(at, ask)
        };
        for at in (0..4 * SLOTS).chain(0..4 * SLOTS) {
            assert_eq!(get(at), at.is_multiple_of(3), "{at}");
        }
        let before = asked.get();
        assert!(get(3) && get(3));
        assert!(asked.get() <= before + 1);
    }

    #[test]
    fn places_are_told_from_all_others() {
        let places: Vec<usize> = (0..3000).map(|place| place * 7).collect();
        let mut known = Known::of_places(&places);
        for at in 0..30_000_usize {
            let expected = at < 21_000 && at.is_multiple_of(7);
            assert_eq!(known.get(at, || unreachable!()), expected, "{at}");
        }
    }
}
