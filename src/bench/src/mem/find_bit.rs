//! Searches for the set bits of a bitmap, word by word or bit by bit.

use std::hint::black_box;
use std::time::Instant;

use rperf_count::Spread;

/// Bits of a word.
const WORD: usize = u64::BITS as usize;

/// The benchmark `mem find_bit`.
#[derive(Debug, Clone, Copy)]
pub struct FindBit {
    /// Number of measurements.
    pub outer: u64,
    /// Number of searches in each measurement.
    pub inner: u64,
}

/// Mean and deviation of the times of one bitmap's measurements, in microseconds. Each measurement has [`FindBit::inner`]
/// searches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitTimes {
    /// By words, skipping bits that are not set.
    pub by_words: Spread,
    /// Bit by bit.
    pub by_bits: Spread,
}

impl FindBit {
    /// Number of bits of the largest bitmap that perf searches.
    pub const LARGEST: usize = 2048;

    /// Measures searches of a bitmap of `bits` bits, of which `set` are set at equal distances. `set` must not exceed `bits`.
    #[must_use]
    pub fn run(&self, bits: usize, set: usize) -> BitTimes {
        let map = bitmap(bits, set);
        let mut times = BitTimes {
            by_words: Spread::default(),
            by_bits: Spread::default(),
        };
        for _ in 0..self.outer {
            times
                .by_words
                .add(self.measure(|| by_words(black_box(&map))));
            times
                .by_bits
                .add(self.measure(|| by_bits(black_box(&map), bits)));
        }
        times
    }

    /// Returns the total time of the searches of one measurement, in microseconds.
    fn measure(&self, search: impl Fn() -> usize) -> f64 {
        let start = Instant::now();
        for _ in 0..self.inner {
            black_box(search());
        }
        start.elapsed().as_secs_f64() * 1e6
    }
}

fn bitmap(bits: usize, set: usize) -> Vec<u64> {
    let mut map = vec![0; bits.div_ceil(WORD)];
    for bit in (0..bits).step_by((bits / set.max(1)).max(1)).take(set) {
        if let Some(word) = map.get_mut(bit / WORD) {
            *word |= 1 << (bit % WORD);
        }
    }
    map
}

/// Returns the sum of the positions of the set bits. In each word, goes from one set bit directly to the next.
fn by_words(map: &[u64]) -> usize {
    let mut sum = 0;
    for (index, word) in map.iter().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            sum += index * WORD + rest.trailing_zeros() as usize;
            // Clears the lowest set bit.
            rest &= rest - 1;
        }
    }
    sum
}

/// Returns the sum of the positions of the set bits, testing each bit.
fn by_bits(map: &[u64], bits: usize) -> usize {
    let is_set = |bit: &usize| {
        map.get(bit / WORD)
            .is_some_and(|word| word >> (bit % WORD) & 1 != 0)
    };
    (0..bits).filter(is_set).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_searches_find_the_same_bits() {
        for bits in [1, 2, 64, 128, 2048] {
            for set in [1, 2, 64, 2048].into_iter().filter(|set| *set <= bits) {
                let map = bitmap(bits, set);
                let count: u32 = map.iter().map(|word| word.count_ones()).sum();
                assert_eq!(count as usize, set, "{bits}");
                assert_eq!(by_words(&map), by_bits(&map, bits), "{bits} {set}");
            }
        }
        assert_eq!(by_words(&[0b101, 0b10]), 2 + 65);
        let times = FindBit { outer: 3, inner: 2 }.run(64, 8);
        assert_eq!((times.by_words.number(), times.by_bits.number()), (3, 3));
    }
}
