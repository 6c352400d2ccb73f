//! Splits a recording whose length is not known in advance into equal intervals, and sums values in each.

/// The maximum number of intervals; even, as pairs are merged. After a merge, more than half of them are used.
const MAX_INTERVALS: usize = 32;

/// Intervals of equal width, the first of which begins at the time that is added first. The width doubles while a time is
/// beyond the last interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    /// The time that was added first and the highest time, in nanoseconds; `None` before any is added.
    times: Option<(u64, u64)>,
    /// Binary logarithm of the width in nanoseconds.
    width_log2: u32,
}

/// A sum for each interval: a count, bytes, or bytes allocated less bytes freed.
#[derive(Debug, Clone, Default)]
pub(super) struct IntervalSums([i64; MAX_INTERVALS]);

impl Intervals {
    /// Adds a time in nanoseconds, and returns the index of its interval. If the time is beyond the last interval, the width
    /// doubles until it is not, and pairs of intervals of all `sums` are merged. A time before the first interval is in
    /// interval 0.
    pub(super) fn add_time<'s>(
        &mut self,
        time: u64,
        sums: impl Iterator<Item = &'s mut IntervalSums>,
    ) -> usize {
        let (begin, highest) = self.times.unwrap_or((time, time));
        self.times = Some((begin, highest.max(time)));
        let offset = time.saturating_sub(begin);
        let before = self.width_log2;
        while (offset >> self.width_log2) >= MAX_INTERVALS as u64 {
            self.width_log2 += 1;
        }
        if self.width_log2 > before {
            for interval_sums in sums {
                for _ in before..self.width_log2 {
                    interval_sums.merge_pairs();
                }
            }
        }
        usize::try_from(offset >> self.width_log2).unwrap_or_default()
    }

    /// Returns the time that was added first, in nanoseconds; 0 if there is none.
    pub(super) fn begin(&self) -> u64 {
        self.times.map_or(0, |(begin, _)| begin)
    }

    /// Returns the highest time, in nanoseconds; 0 if there is none.
    pub(super) fn highest(&self) -> u64 {
        self.times.map_or(0, |(_, highest)| highest)
    }

    /// Returns the exclusive end of each interval, in nanoseconds, up to the interval that contains the highest time.
    pub(super) fn ends(&self) -> Vec<u64> {
        let Some((begin, highest)) = self.times else {
            return Vec::new();
        };
        let last_index = (highest - begin) >> self.width_log2;
        let width = 1_u64 << self.width_log2;
        let ends = (1..=last_index + 1).map(|end| begin.saturating_add(end.saturating_mul(width)));
        ends.collect()
    }
}

impl IntervalSums {
    /// Adds a count or bytes to the sum of an interval.
    pub(super) fn increase(&mut self, interval: usize, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        if let Some(sum) = self.0.get_mut(interval) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Subtracts a count or bytes from the sum of an interval.
    pub(super) fn decrease(&mut self, interval: usize, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        if let Some(sum) = self.0.get_mut(interval) {
            *sum = sum.saturating_sub(value);
        }
    }

    /// Adds the sums of each interval in `other`.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(other);
        }
    }

    /// Merges pairs of intervals.
    fn merge_pairs(&mut self) {
        let (pairs, _) = self.0.as_chunks::<2>();
        let mut merged = [0; MAX_INTERVALS];
        for (sum, [first, second]) in merged.iter_mut().zip(pairs) {
            *sum = first.saturating_add(*second);
        }
        self.0 = merged;
    }

    /// Returns the sum of an interval; a negative one is 0.
    pub(super) fn get(&self, interval: usize) -> u64 {
        let sum = self.0.get(interval).copied().unwrap_or_default();
        u64::try_from(sum).unwrap_or_default()
    }

    /// Returns the running total of the sums for each of the first `intervals` intervals. If the sums are bytes allocated less
    /// bytes freed, these are the live bytes at the end of each interval. A negative total is 0.
    pub(super) fn cumulative(&self, intervals: usize) -> Vec<u64> {
        let mut total = 0_i64;
        let changes = self.0.iter().take(intervals);
        // `self` has the changes in each interval, `sums` are the totals at their ends.
        let sums = changes.map(|change| {
            total = total.saturating_add(*change);
            u64::try_from(total).unwrap_or_default()
        });
        sums.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{IntervalSums, Intervals, MAX_INTERVALS};
    use proptest::prelude::*;

    proptest! {
        /// The curves are the running totals of [`IntervalSums::cumulative`].
        #[test]
        fn curves_match_a_sum_over_all_changes(
            changes in prop::collection::vec((0..5_000_000_000_u64, 1..9000_u64), 1..200),
        ) {
            let mut changes = changes;
            changes.sort_unstable();
            let (mut intervals, mut sums) = (Intervals::default(), [IntervalSums::default()]);
            for (time, bytes) in &changes {
                let interval = intervals.add_time(*time, sums.iter_mut());
                sums[0].increase(interval, *bytes);
            }
            let ends = intervals.ends();
            let expected: Vec<u64> = ends
                .iter()
                .map(|end| changes.iter().filter(|(time, _)| time < end).map(|(_, bytes)| bytes).sum())
                .collect();
            prop_assert_eq!(sums[0].cumulative(ends.len()), expected);
            prop_assert!(ends.len() <= MAX_INTERVALS);
            prop_assert!(*ends.last().unwrap() > intervals.highest());
        }
    }
}
