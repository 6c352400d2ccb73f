//! Random choices that depend only on a seed and the number of a run.

/// A random number generator (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator for run `number` of `seed`.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ number);
        // Mixed, so that adjacent seeds and numbers give unrelated generators.
        Self(random.next() ^ number.rotate_left(32))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit as u64).max(1)) as usize
    }

    /// True with a probability of 1 in `count`.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// A random element.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A random element, if there is any.
    pub(crate) fn try_pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        (!choices.is_empty()).then(|| self.pick(choices))
    }

    /// A random index, each with a probability proportional to its weight; 0 if there is no weight above 0.
    pub(crate) fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut remaining = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            match remaining.checked_sub(*weight) {
                Some(less) => remaining = less,
                None => return index,
            }
        }
        0
    }
}

#[test]
fn choices_depend_on_seed_and_number_and_follow_weights() {
    let draw = |seed, number| {
        let mut random = Random::new(seed, number);
        (0..4).map(|_| random.below(1000)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1, 7), draw(1, 7));
    assert_ne!(draw(1, 7), draw(1, 8));
    assert_ne!(draw(1, 7), draw(2, 7));
    let mut random = Random::new(1, 1);
    let drawn: Vec<usize> = (0..1000).map(|_| random.weighted(&[1, 0, 3])).collect();
    assert!(!drawn.contains(&1));
    // About three quarters of 1000.
    assert!(drawn.iter().filter(|index| **index == 2).count() > 600);
}
