//! Sort codes: several columns encoded as one number per item, so that comparisons are fast.

use std::hash::Hash;

use crate::stacks::Interner;

/// A column: the rank of each item among the distinct values, from 0.
pub(crate) struct RankColumn {
    pub(crate) ranks: Vec<u32>,
    /// Number of distinct values.
    pub(crate) count: u32,
}

impl RankColumn {
    pub(crate) fn new<T: Copy + Ord + Hash>(values: impl Iterator<Item = T>) -> Self {
        let mut distinct = Interner::default();
        // The interner numbers the distinct values in the order in which they first occur; the rank is a value's position when
        // the distinct values are sorted.
        let numbers: Vec<u32> = values.map(|value| distinct.intern(value)).collect();
        let mut sorted: Vec<(T, u32)> = distinct.into_items().into_iter().zip(0..).collect();
        sorted.sort_unstable();
        let mut rank_of_number = vec![0; sorted.len()];
        for ((_, number), rank) in sorted.iter().zip(0..) {
            rank_of_number[*number as usize] = rank;
        }
        let ranks = numbers.into_iter();
        Self {
            ranks: ranks
                .map(|number| rank_of_number[number as usize])
                .collect(),
            count: rank_of_number.len() as u32,
        }
    }
}

/// One code per item, made of its ranks in several columns. Codes compare like the rows of ranks:
/// by the first column, then by the second, and so on.
pub(crate) struct RankCodes {
    codes: Vec<u64>,
    /// Number of bits used in each code.
    bits: u32,
}

impl RankCodes {
    /// Creates codes without columns: all `count` items are equal.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            codes: vec![0; count],
            bits: 0,
        }
    }

    /// Appends a column of ranks below `count`, one for each item.
    pub(crate) fn push(&mut self, ranks: impl Iterator<Item = u32>, count: u32) {
        let bits = bits_below(count);
        if self.bits + bits > u64::BITS {
            // The columns no longer fit into one word: replaces the codes by their ranks. These and the ranks of the new
            // column have at most 32 bits each.
            let column = RankColumn::new(self.codes.iter().copied());
            self.bits = bits_below(column.count);
            self.codes = column.ranks.into_iter().map(u64::from).collect();
        }
        for (code, rank) in self.codes.iter_mut().zip(ranks) {
            *code = *code << bits | u64::from(rank);
        }
        self.bits += bits;
    }

    /// Converts the codes to one column of ranks.
    pub(crate) fn dense(self) -> RankColumn {
        if self.bits == 0 {
            return RankColumn {
                count: u32::from(!self.codes.is_empty()),
                ranks: vec![0; self.codes.len()],
            };
        }
        RankColumn::new(self.codes.into_iter())
    }

    /// Returns each item's code and position, sorted by code; items with equal codes keep their order.
    pub(crate) fn sorted(self) -> Vec<(u64, u32)> {
        let mut sorted: Vec<(u64, u32)> = self.codes.into_iter().zip(0..).collect();
        sorted.sort_unstable();
        sorted
    }
}

/// Number of bits of the ranks below `count`.
fn bits_below(count: u32) -> u32 {
    u32::BITS - count.saturating_sub(1).leading_zeros()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn codes_compare_as_the_columns_do(
            rows in prop::collection::vec(prop::collection::vec(0u32..1000, 9), 0..60),
            columns in 0usize..9,
            wide: bool,
        ) {
            // If `wide`, the count passed to `push` is much higher than the number of distinct values: 20 bits, so that more than
            // three columns don't fit into one word. Division by 200 leaves 5 distinct values, so that items are often equal.
            let mut codes = RankCodes::new(rows.len());
            for at in 0..columns {
                let column = RankColumn::new(rows.iter().map(|row| row[at] / 200));
                prop_assert!(column.count <= 5);
                let count = if wide { 1 << 20 } else { column.count };
                codes.push(column.ranks.into_iter(), count);
            }
            let key = |row: &[u32]| -> Vec<u32> { row[..columns].iter().map(|part| part / 200).collect() };
            let mut expected: Vec<u32> = (0..rows.len() as u32).collect();
            expected.sort_by_key(|row| key(&rows[*row as usize]));
            let sorted: Vec<u32> = codes.sorted().into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
