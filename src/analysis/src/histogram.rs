//! Distributions of numbers such as durations, with little memory and bounded error.

use std::iter::Sum;
use std::ops::AddAssign;

/// The binary logarithm of the number of buckets per power of two.
const SUB_BITS: u32 = 6;
const SUB_BUCKETS: usize = 1 << SUB_BITS;

/// A log-linear histogram, as in HdrHistogram: numbers below 128 have a bucket each, above that each power of two is divided
/// into 64 buckets.
///
/// Count, sum, minimum and maximum are exact. A percentile differs from the exact one by at most 1/128 of it
/// ([`LogHistogram::MAX_ERROR`]). Two histograms are merged without further error. Uses 8 bytes for each bucket between the
/// lowest and the highest used one: at most 30 KB, and some 3 KB for durations from 1 µs to 100 µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHistogram {
    /// The bucket number of the first of `buckets`.
    first: usize,
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

/// A bucket with at least one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramBucket {
    /// The lowest value that belongs to the bucket.
    pub from: u64,
    /// The end of the values, exclusive; inclusive only if it is `u64::MAX`, in the bucket of the highest possible values.
    pub to: u64,
    /// The number of values.
    pub count: u64,
}

/// Summary statistics of a distribution, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// The sum.
    pub sum: u128,
    /// The minimum.
    pub min: u64,
    /// The maximum.
    pub max: u64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The median, within [`LogHistogram::MAX_ERROR`], as are the following.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LogHistogram {
    /// The maximum relative error of a percentile: half the width of a bucket, relative to its lowest value.
    pub const MAX_ERROR: f64 = 1.0 / (2 * SUB_BUCKETS) as f64;

    /// Creates an empty histogram.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: 0,
            buckets: Vec::new(),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Creates a histogram of values that were counted elsewhere: `counts` by the number of the bucket, and the exact sum,
    /// minimum and maximum. Bucket numbers are those of [`LogHistogram`]: the value itself if below 128, above that 64 numbers
    /// for each power of two.
    #[must_use]
    pub fn from_counts(counts: &[u32], sum: u128, min: u64, max: u64) -> Self {
        let used = |count: &u32| *count > 0;
        let Some(first) = counts.iter().position(used) else {
            return Self::new();
        };
        let counts = counts.get(first..).unwrap_or_default();
        let end = counts.iter().rposition(used).map_or(0, |last| last + 1);
        let buckets: Vec<u64> = counts.iter().take(end).copied().map(u64::from).collect();
        Self {
            first,
            count: buckets.iter().sum(),
            buckets,
            sum,
            min,
            max,
        }
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let bucket = bucket(value);
        self.cover(bucket, bucket);
        if let Some(count) = self.buckets.get_mut(bucket - self.first) {
            *count += 1;
        }
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let Some(last) = other.buckets.len().checked_sub(1) else {
            return;
        };
        self.cover(other.first, other.first + last);
        let own = self.buckets.iter_mut().skip(other.first - self.first);
        for (own, other) in own.zip(&other.buckets) {
            *own += other;
        }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the sum of the values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the minimum.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the maximum.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the arithmetic mean, 0 if there are no values.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean needs no more than 53 bits"
    )]
    pub fn mean(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }

    /// Returns the nearest-rank percentile: the smallest value `v` such that at least `per_mille` thousandths of all values are
    /// at most `v`. 500 is the median, 999 is p99.9. The result is within [`LogHistogram::MAX_ERROR`] of the exact value, and
    /// between minimum and maximum. `None` if there are no values.
    #[must_use]
    pub fn percentile(&self, per_mille: u32) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000);
        self.at_rank(u64::try_from(rank).unwrap_or(u64::MAX))
    }

    /// Returns the value of this rank, from 1 on, among the sorted values: the first or the last value if the rank is too low or
    /// too high, `None` if there are no values. The error is that of a percentile.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let rank = rank.clamp(1, self.count.max(1));
        let mut cumulative = 0;
        let mut counts = self.buckets.iter();
        let index = counts.position(|count| {
            cumulative += count;
            cumulative >= rank
        })?;
        let value = middle(self.first + index);
        Some(value.clamp(self.min, self.max))
    }

    /// Returns the buckets with at least one value, by increasing value.
    pub fn buckets(&self) -> impl Iterator<Item = HistogramBucket> + '_ {
        let buckets = (self.first..).zip(&self.buckets);
        let used = buckets.filter(|(_, count)| **count > 0);
        used.map(|(bucket, count)| {
            let (from, width) = bounds(bucket);
            HistogramBucket {
                from,
                to: from.saturating_add(width),
                count: *count,
            }
        })
    }

    /// Returns the summary statistics, all 0 if there are no values.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let percentile = |per_mille| self.percentile(per_mille).unwrap_or_default();
        Distribution {
            count: self.count,
            sum: self.sum,
            min: self.min().unwrap_or_default(),
            max: self.max,
            mean: self.mean(),
            p50: percentile(500),
            p90: percentile(900),
            p99: percentile(990),
            p999: percentile(999),
        }
    }

    /// Extends the buckets to cover the bucket numbers `low` to `high`, inclusive.
    #[inline]
    fn cover(&mut self, low: usize, high: usize) {
        if self.buckets.is_empty() {
            self.first = low;
        } else if low < self.first {
            let zeros = std::iter::repeat_n(0, self.first - low);
            self.buckets.splice(0..0, zeros);
            self.first = low;
        }
        if high >= self.first + self.buckets.len() {
            self.buckets.resize(high - self.first + 1, 0);
        }
    }
}

impl AddAssign<&Self> for LogHistogram {
    fn add_assign(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl Extend<u64> for LogHistogram {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.add(value));
    }
}

impl FromIterator<u64> for LogHistogram {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut histogram = Self::new();
        histogram.extend(values);
        histogram
    }
}

impl<'h> Sum<&'h LogHistogram> for LogHistogram {
    fn sum<I: Iterator<Item = &'h LogHistogram>>(parts: I) -> Self {
        let mut sum = Self::new();
        parts.for_each(|part| sum.merge(part));
        sum
    }
}

/// Returns the bucket number of a value: the value itself if it has at most `SUB_BITS + 1` bits; otherwise its highest
/// `SUB_BITS + 1` bits, plus `SUB_BUCKETS` for each bit below them.
#[inline]
fn bucket(value: u64) -> usize {
    let shift = shift_of(value);
    shift as usize * SUB_BUCKETS + (value >> shift) as usize
}

/// Returns the right shift that leaves `SUB_BITS + 1` bits of a value; 0 if it has no more.
#[inline]
fn shift_of(value: u64) -> u32 {
    (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1)
}

/// Returns the value in the middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (low, width) = bounds(bucket);
    low + width / 2
}

/// Returns the lowest value of a bucket, and how many values the bucket covers.
fn bounds(bucket: usize) -> (u64, u64) {
    let shift = (bucket / SUB_BUCKETS).saturating_sub(1);
    let low = ((bucket - shift * SUB_BUCKETS) as u64) << shift;
    (low, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let histogram: LogHistogram = (1..=100).collect();
        let found = histogram.distribution();
        let percentiles = [found.p50, found.p90, found.p99, found.p999];
        assert_eq!(percentiles, [50, 90, 99, 100]);
        assert_eq!((found.count, found.sum), (100, 5050));
        assert_eq!((found.min, found.max, found.mean), (1, 100, 50.5));
    }

    proptest! {
        #[test]
        fn values_counted_elsewhere_give_the_same_histogram(values in proptest::collection::vec(0..1_u64 << 37, 0..100)) {
            // Values below 2^37 have bucket numbers below 2048.
            let mut counts = vec![0; 2048];
            values.iter().for_each(|value| counts[bucket(*value)] += 1);
            let sum = values.iter().copied().map(u128::from).sum();
            let min = values.iter().copied().min().unwrap_or(u64::MAX);
            let max = values.iter().copied().max().unwrap_or_default();
            let expected: LogHistogram = values.into_iter().collect();
            prop_assert_eq!(LogHistogram::from_counts(&counts, sum, min, max), expected);
        }
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        let empty = LogHistogram::new();
        assert_eq!(empty.percentile(500), None);
        assert_eq!((empty.min(), empty.max()), (None, None));
        assert_eq!(empty.distribution(), Distribution::default());
    }

    #[test]
    fn the_ends_of_the_range_have_buckets() {
        let histogram: LogHistogram = [0, u64::MAX, u64::MAX].into_iter().collect();
        assert_eq!(histogram.percentile(0), Some(0));
        assert!(histogram.percentile(500) >= Some(u64::MAX - u64::MAX / 128));
        assert_eq!(histogram.sum(), 2 * u128::from(u64::MAX));
        assert!(histogram.buckets.len() * 8 <= 30 << 10);
    }

    /// Values of all magnitudes.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift);
        proptest::collection::vec(value, 1..200)
    }

    fn exact(sorted: &[u64], per_mille: u32) -> u64 {
        let rank = (sorted.len() * per_mille as usize).div_ceil(1000);
        sorted[rank.max(1) - 1]
    }

    proptest! {
        #[test]
        fn percentiles_match_the_sorted_values(values in values(), per_mille in 0..=1000_u32) {
            let histogram: LogHistogram = values.iter().copied().collect();
            let mut sorted = values;
            sorted.sort_unstable();
            let exact = exact(&sorted, per_mille);
            let found = histogram.percentile(per_mille).unwrap();
            let error = found.abs_diff(exact) as f64;
            prop_assert!(error <= exact as f64 * LogHistogram::MAX_ERROR, "{found} for {exact}");
            let rank = sorted.iter().position(|value| *value == exact).unwrap() as u64 + 1;
            let of_rank = histogram.at_rank(rank).unwrap();
            prop_assert!(of_rank.abs_diff(exact) as f64 <= exact as f64 * LogHistogram::MAX_ERROR);
            prop_assert_eq!(histogram.count(), sorted.len() as u64);
            prop_assert_eq!(histogram.sum(), sorted.iter().map(|value| u128::from(*value)).sum::<u128>());
            prop_assert_eq!(histogram.min(), sorted.first().copied());
            prop_assert_eq!(histogram.max(), sorted.last().copied());
        }

        #[test]
        fn parts_merge_to_the_whole(values in values(), at in any::<prop::sample::Index>()) {
            let unsplit: LogHistogram = values.iter().copied().collect();
            let (one, other) = values.split_at(at.index(values.len() + 1));
            let parts = [one, other].map(|part| part.iter().copied().collect::<LogHistogram>());
            let merged: LogHistogram = parts.iter().sum();
            prop_assert_eq!(&merged.distribution(), &unsplit.distribution());
            prop_assert_eq!(&merged, &unsplit);
        }

        #[test]
        fn buckets_count_their_values(values in values()) {
            let histogram: LogHistogram = values.iter().copied().collect();
            let mut total = 0;
            for HistogramBucket { from, to, count } in histogram.buckets() {
                let is_inside = |value: &u64| from <= *value && (*value < to || to == u64::MAX);
                prop_assert_eq!(count, values.iter().copied().filter(is_inside).count() as u64);
                total += count;
            }
            prop_assert_eq!(total, values.len() as u64);
        }

        #[test]
        fn buckets_rise_with_their_values(value in any::<u64>()) {
            prop_assert!(bucket(value) <= bucket(value.saturating_add(1)));
            prop_assert_eq!(bucket(middle(bucket(value))), bucket(value));
        }
    }
}
