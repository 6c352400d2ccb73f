//! Splits a recording whose length is not known in advance into equal intervals, and sums values in each.

/// The maximum number of intervals; even, as pairs are merged. After a merge, more than half of them are used.
const MAX_INTERVALS: usize = 32;

/// Intervals of equal width, the first of which begins at the first time. The width doubles while a time is beyond
/// the last interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    /// The first and the last time, in nanoseconds; `None` before the first.
    times: Option<(u64, u64)>,
    /// Binary logarithm of the width in nanoseconds.
    width: u32,
}

/// A sum for each interval: a count, or bytes allocated less bytes freed.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveCurve([i64; MAX_INTERVALS]);

impl Intervals {
    /// Returns the index of the interval of a time in nanoseconds. If the time is beyond the last interval, the width
    /// doubles until it is not, and pairs of intervals of all `curves` are merged. A time before the first is in interval 0.
    pub(super) fn of<'c>(
        &mut self,
        time: u64,
        curves: impl Iterator<Item = &'c mut LiveCurve>,
    ) -> usize {
        let (begin, last) = self.times.unwrap_or((time, time));
        self.times = Some((begin, last.max(time)));
        let offset = time.saturating_sub(begin);
        let before = self.width;
        while (offset >> self.width) >= MAX_INTERVALS as u64 {
            self.width += 1;
        }
        if self.width > before {
            for curve in curves {
                for _ in before..self.width {
                    curve.halve();
                }
            }
        }
        usize::try_from(offset >> self.width).unwrap_or_default()
    }

    /// Returns the first time, in nanoseconds; 0 if there is none.
    pub(super) fn begin(&self) -> u64 {
        self.times.map_or(0, |(begin, _)| begin)
    }

    /// Returns the last time, in nanoseconds; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.times.map_or(0, |(_, last)| last)
    }

    /// Returns the end of each interval up to that of the last time, exclusive, in nanoseconds.
    pub(super) fn ends(&self) -> Vec<u64> {
        let Some((begin, last)) = self.times else {
            return Vec::new();
        };
        let last_index = (last - begin) >> self.width;
        let ends = (0..=last_index).map(|number| begin.saturating_add((number + 1) << self.width));
        ends.collect()
    }
}

impl LiveCurve {
    /// Adds a value, such as bytes, to the sum of an interval if `is_new`; otherwise subtracts it.
    pub(super) fn change(&mut self, interval: usize, bytes: u64, is_new: bool) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if let Some(sum) = self.0.get_mut(interval) {
            *sum = match is_new {
                true => sum.saturating_add(bytes),
                false => sum.saturating_sub(bytes),
            };
        }
    }

    /// Adds another curve.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(other);
        }
    }

    /// Merges pairs of intervals.
    fn halve(&mut self) {
        let (pairs, _) = self.0.as_chunks::<2>();
        let mut halved = [0; MAX_INTERVALS];
        for (sum, [first, second]) in halved.iter_mut().zip(pairs) {
            *sum = first.saturating_add(*second);
        }
        self.0 = halved;
    }

    /// Returns the sum of an interval; a negative one is 0.
    pub(super) fn of(&self, interval: usize) -> u64 {
        let sum = self.0.get(interval).copied().unwrap_or_default();
        u64::try_from(sum).unwrap_or_default()
    }

    /// Returns the live bytes at the end of each of the first `intervals` intervals; negative sums are 0.
    pub(super) fn cumulative(&self, intervals: usize) -> Vec<u64> {
        let mut live = 0_i64;
        let changes = self.0.iter().take(intervals);
        let sums = changes.map(|change| {
            live = live.saturating_add(*change);
            u64::try_from(live).unwrap_or_default()
        });
        sums.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Intervals, LiveCurve, MAX_INTERVALS};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn curves_match_a_sum_over_all_changes(
            changes in prop::collection::vec((0..5_000_000_000_u64, 1..9000_u64), 1..200),
        ) {
            let mut changes = changes;
            changes.sort_unstable();
            let (mut intervals, mut curves) = (Intervals::default(), [LiveCurve::default()]);
            for (time, bytes) in &changes {
                let interval = intervals.of(*time, curves.iter_mut());
                curves[0].change(interval, *bytes, true);
            }
            let ends = intervals.ends();
            let expected: Vec<u64> = ends
                .iter()
                .map(|end| changes.iter().filter(|(time, _)| time < end).map(|(_, bytes)| bytes).sum())
                .collect();
            prop_assert_eq!(curves[0].cumulative(ends.len()), expected);
            prop_assert!(ends.len() <= MAX_INTERVALS);
            prop_assert!(*ends.last().unwrap() > intervals.last());
        }
    }
}
