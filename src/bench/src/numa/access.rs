//! Passes over memory, word by word.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random::{first_state, next_random};

/// The operations of a pass on each word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryAccess {
    /// Whether words are read.
    pub reads: bool,
    /// Whether words are written: each is increased by 1, or set to 1 if `reads` is false. A pass with neither `reads` nor
    /// `writes`, which would do nothing, also sets them to 1.
    pub writes: bool,
    /// Whether zeros are written; then `reads` and `writes` are ignored.
    pub zeros: bool,
    /// The order of the words.
    pub order: PassOrder,
}

/// The order in which a pass takes the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PassOrder {
    /// From the first to the last.
    #[default]
    Forward,
    /// Forward, then backward, and so on.
    Alternating,
    /// Random words, as many as there are words; a word can be taken several times or never.
    Random,
}

impl Default for MemoryAccess {
    fn default() -> Self {
        Self {
            reads: true,
            writes: true,
            zeros: false,
            order: PassOrder::default(),
        }
    }
}

impl MemoryAccess {
    /// Passes over the words once. `round` counts, from 0, the task's passes over all its memory.
    pub(super) fn pass(self, words: &[AtomicU64], round: u64) {
        match self.order {
            PassOrder::Alternating if round % 2 == 1 => self.visit(words.iter().rev()),
            PassOrder::Forward | PassOrder::Alternating => self.visit(words.iter()),
            PassOrder::Random => {
                let mut state = first_state(round);
                let chosen = || words.get(next_random(&mut state) as usize % words.len().max(1));
                self.visit(std::iter::repeat_with(chosen).take(words.len()).flatten());
            }
        }
    }

    fn visit<'w>(self, words: impl Iterator<Item = &'w AtomicU64>) {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let store = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        match (self.zeros, self.reads, self.writes) {
            (true, _, _) => words.for_each(|word| store(word, 0)),
            (false, true, false) => {
                black_box(words.fold(0, |sum: u64, word| sum.wrapping_add(load(word))));
            }
            (false, false, _) => words.for_each(|word| store(word, 1)),
            (false, true, true) => words.for_each(|word| store(word, load(word).wrapping_add(1))),
        }
    }
}

/// Fills words with random numbers.
pub(super) fn fill_randomly(words: &[AtomicU64]) {
    let mut state = 1;
    for word in words {
        word.store(next_random(&mut state), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(access: MemoryAccess) -> Vec<u64> {
        let words: Vec<AtomicU64> = [5, 6, 7].map(AtomicU64::new).into();
        // An odd round: `PassOrder::Alternating` passes backward.
        let round = 1;
        access.pass(&words, round);
        words
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect()
    }

    #[test]
    fn words_are_read_or_written() {
        let default = MemoryAccess::default();
        let reads = MemoryAccess {
            writes: false,
            ..default
        };
        let writes = MemoryAccess {
            reads: false,
            ..default
        };
        let zeros = MemoryAccess {
            zeros: true,
            order: PassOrder::Alternating,
            ..default
        };
        assert_eq!(after(default), [6, 7, 8]);
        assert_eq!(after(reads), [5, 6, 7]);
        assert_eq!(after(writes), [1, 1, 1]);
        assert_eq!(after(zeros), [0, 0, 0]);
        let random = MemoryAccess {
            order: PassOrder::Random,
            ..default
        };
        // A word may be increased more than once.
        assert_eq!(after(random).iter().sum::<u64>(), 5 + 6 + 7 + 3);
    }
}
