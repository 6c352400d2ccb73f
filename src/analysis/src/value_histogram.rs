//! Histograms of values: fields of tracepoints, periods, latencies.

use std::fmt;

use rperf_replay::{EventIndex, Fold, Sample, World};
use rperf_tracepoint::{FieldReader, Value};

use crate::{FilteredSamples, LogHistogram, PrepareSamples as _};

/// Counts of values in adjacent ranges, with summary statistics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueHistogram {
    /// The lowest value of each range but the first, ascending.
    edges: Vec<i128>,
    /// The number of values in each range; one more than `edges`.
    counts: Vec<u64>,
    sum: i128,
    /// Magnitudes of the negative values.
    negative: LogHistogram,
    /// The values that are not negative.
    non_negative: LogHistogram,
}

/// A range and the number of values in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// The lowest value; `None` for the first range.
    pub from: Option<i128>,
    /// The highest value, inclusive; `None` for the last range.
    pub to: Option<i128>,
    /// The number of values in the range.
    pub count: u64,
}

/// The bounds, as in `64 -> 511`, `-> 3` and `1500 ->`.
impl fmt::Display for ValueRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(from) = self.from {
            write!(f, "{from} ")?;
        }
        f.write_str("->")?;
        self.to.map_or(Ok(()), |to| write!(f, " {to}"))
    }
}

/// Summary statistics, in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueSummary {
    /// The number of values, at least 1.
    pub count: u64,
    /// Their sum.
    pub sum: i128,
    /// The lowest.
    pub min: i128,
    /// The highest.
    pub max: i128,
    /// The arithmetic mean.
    pub mean: f64,
    /// 50th, 90th and 99th percentile, within [`LogHistogram::MAX_ERROR`].
    pub percentiles: [i128; 3],
}

/// Returns edges at 0 and at the powers of `base` up to `max`: 0, 1, `base`, its square, … A `base` below 2 is raised to 2.
#[must_use]
pub fn power_edges(base: u64, max: u64) -> Vec<i128> {
    let mut edges = vec![0];
    let mut edge = 1;
    while edge <= i128::from(max) {
        edges.push(edge);
        edge = edge.saturating_mul(i128::from(base.max(2)));
    }
    edges
}

impl ValueHistogram {
    /// Creates an empty histogram whose ranges are separated by these edges. An edge is the lowest value of the range above it.
    #[must_use]
    pub fn new(mut edges: Vec<i128>) -> Self {
        edges.sort_unstable();
        edges.dedup();
        Self {
            counts: vec![0; edges.len() + 1],
            edges,
            sum: 0,
            negative: LogHistogram::new(),
            non_negative: LogHistogram::new(),
        }
    }

    /// Adds a value that fits in an `i64` or a `u64`.
    #[inline]
    pub fn add(&mut self, value: i128) {
        let range = self.edges.partition_point(|edge| *edge <= value);
        if let Some(count) = self.counts.get_mut(range) {
            *count += 1;
        }
        self.sum += value;
        let magnitude = u64::try_from(value.unsigned_abs()).unwrap_or(u64::MAX);
        match value < 0 {
            true => self.negative.add(magnitude),
            false => self.non_negative.add(magnitude),
        }
    }

    /// Adds the values of a histogram with the same edges.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(&other.counts) {
            *own += more;
        }
        self.sum += other.sum;
        self.negative.merge(&other.negative);
        self.non_negative.merge(&other.non_negative);
    }

    /// Merges the empty ranges at the upper end into one, which has no upper bound. The lowest edge is kept even without
    /// values.
    pub fn trim(&mut self) {
        let used = self.counts.iter().rposition(|count| *count > 0);
        // Including the edge between the last used range and the empty one.
        let edge_count = used.map_or(0, |used| used + 1);
        self.edges.truncate(edge_count.max(1));
        self.counts.truncate(self.edges.len() + 1);
    }

    /// The number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.negative.count() + self.non_negative.count()
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = ValueRange> + '_ {
        let from = std::iter::once(None).chain(self.edges.iter().copied().map(Some));
        let to = self.edges.iter().map(|edge| Some(edge - 1));
        let bounds = from.zip(to.chain(std::iter::once(None)));
        bounds
            .zip(&self.counts)
            .map(|((from, to), count)| ValueRange {
                from,
                to,
                count: *count,
            })
    }

    /// Summary statistics; `None` without values.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean needs no more than 53 bits"
    )]
    pub fn summary(&self) -> Option<ValueSummary> {
        let lowest_negative = self.negative.max().map(|magnitude| -i128::from(magnitude));
        let highest_non_negative = self.non_negative.max().map(i128::from);
        let min = lowest_negative.or(self.non_negative.min().map(i128::from))?;
        let max =
            highest_non_negative.or(self.negative.min().map(|magnitude| -i128::from(magnitude)))?;
        Some(ValueSummary {
            count: self.count(),
            sum: self.sum,
            min,
            max,
            mean: self.sum as f64 / self.count() as f64,
            percentiles: [500, 900, 990].map(|per_mille| self.percentile(per_mille)),
        })
    }

    /// The percentile for `per_mille`, within [`LogHistogram::MAX_ERROR`]. There must be values.
    fn percentile(&self, per_mille: u128) -> i128 {
        let rank = (u128::from(self.count()) * per_mille).div_ceil(1000).max(1);
        let rank = u64::try_from(rank).unwrap_or(u64::MAX);
        let negative = self.negative.count();
        let (magnitudes, magnitude_rank, sign) = match rank.checked_sub(negative) {
            // The lowest value has the highest magnitude.
            None | Some(0) => (&self.negative, negative - rank + 1, -1),
            Some(rest) => (&self.non_negative, rest, 1),
        };
        sign * i128::from(magnitudes.at_rank(magnitude_rank).unwrap_or_default())
    }
}

/// Which value of a sample is counted.
#[derive(Debug, Clone, Copy)]
pub enum SampleValue {
    /// Its period: the weight of the sample in units of the event.
    Period,
    /// A field of its raw data.
    Field(FieldReader),
}

impl SampleValue {
    /// The value; `None` if the raw data are missing or truncated, or the field is not an integer.
    fn of(self, sample: &Sample<'_>) -> Option<i128> {
        match self {
            Self::Period => Some(sample.period.into()),
            Self::Field(reader) => match reader.value(sample.wire.raw?)? {
                Value::Signed(number) => Some(number.into()),
                Value::Unsigned(number) => Some(number.into()),
                _ => None,
            },
        }
    }
}

/// Counts the values of an event's samples.
pub struct ValueFold<'f> {
    /// The event.
    pub event: EventIndex,
    /// Which value of each sample is counted.
    pub value: SampleValue,
    /// Selects the samples.
    pub filter: FilteredSamples<'f>,
    /// The result.
    pub histogram: ValueHistogram,
    /// The number of selected samples without a value, as when their raw data are truncated.
    pub without_value: u64,
}

impl Fold for ValueFold<'_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        // The sample's decoded raw data, not needed: filters do not read them, and `SampleValue` decodes its field by itself.
        let typed_event = None;
        if sample.event != self.event || self.filter.prepare(world, sample, typed_event).is_none() {
            return;
        }
        match self.value.of(sample) {
            Some(value) => self.histogram.add(value),
            None => self.without_value += 1,
        }
    }

    fn merge(&mut self, later: Self) {
        self.histogram.merge(&later.histogram);
        self.without_value += later.without_value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counted(edges: Vec<i128>, numbers: &[i128]) -> ValueHistogram {
        let mut histogram = ValueHistogram::new(edges);
        numbers.iter().for_each(|number| histogram.add(*number));
        histogram
    }

    fn rows(histogram: &ValueHistogram) -> Vec<(Option<i128>, Option<i128>, u64)> {
        let ranges = histogram.ranges();
        ranges
            .map(|range| (range.from, range.to, range.count))
            .collect()
    }

    #[test]
    fn ranges_begin_at_powers() {
        assert_eq!(power_edges(4, 64), [0, 1, 4, 16, 64]);
        assert_eq!(power_edges(2, u64::MAX).len(), 65);
        let mut histogram = counted(power_edges(4, u64::MAX), &[-5, 0, 1, 3, 4, 15, 15]);
        histogram.trim();
        let expected = [
            (None, Some(-1), 1),
            (Some(0), Some(0), 1),
            (Some(1), Some(3), 2),
            (Some(4), Some(15), 3),
            (Some(16), None, 0),
        ];
        assert_eq!(rows(&histogram), expected);
    }

    #[test]
    fn the_highest_number_is_above_the_last_edge() {
        let mut histogram = counted(power_edges(2, u64::MAX), &[i128::from(u64::MAX)]);
        histogram.trim();
        let last = histogram.ranges().last();
        assert_eq!(
            last.map(|range| (range.from, range.count)),
            Some((Some(1 << 63), 1))
        );
    }

    #[test]
    fn a_histogram_without_numbers_has_ranges_but_no_summary() {
        let empty = counted(vec![10, 5, 10], &[]);
        assert_eq!(rows(&empty).len(), 3);
        assert_eq!(empty.summary(), None);
    }

    #[test]
    fn the_summary_covers_negative_numbers() {
        let summary = counted(vec![0], &[-100, -2, 1, 7]).summary();
        let expected = ValueSummary {
            count: 4,
            sum: -94,
            min: -100,
            max: 7,
            mean: -23.5,
            percentiles: [-2, 7, 7],
        };
        assert_eq!(summary, Some(expected));
        let summary = counted(vec![0], &[i128::from(i64::MIN)]).summary();
        assert_eq!(
            summary.map(|all| (all.min, all.max)),
            Some((-(1 << 63), -(1 << 63)))
        );
    }

    proptest! {
        #[test]
        fn all_numbers_are_counted_and_summarized_also_after_a_merge(
            numbers in proptest::collection::vec(any::<i64>(), 1..60),
            edges in proptest::collection::vec(any::<i16>(), 1..8),
            at in any::<prop::sample::Index>(),
        ) {
            // Shifted by different numbers of bits, so that small magnitudes occur, too.
            let numbers: Vec<i128> = numbers.iter().map(|number| i128::from(*number) >> (number & 63)).collect();
            let edges: Vec<i128> = edges.into_iter().map(i128::from).collect();
            let all = counted(edges.clone(), &numbers);
            for range in all.ranges() {
                let inside = |number: &&i128| {
                    range.from.is_none_or(|from| from <= **number) && range.to.is_none_or(|to| **number <= to)
                };
                prop_assert_eq!(range.count, numbers.iter().filter(inside).count() as u64);
            }
            let (one, other) = numbers.split_at(at.index(numbers.len() + 1));
            let mut merged = counted(edges.clone(), one);
            merged.merge(&counted(edges, other));
            prop_assert_eq!(&merged, &all);
            let mut sorted = numbers;
            sorted.sort_unstable();
            let summary = all.summary().expect("numbers");
            prop_assert_eq!(Some(&summary.min), sorted.first());
            prop_assert_eq!(Some(&summary.max), sorted.last());
            let median = sorted[sorted.len().div_ceil(2) - 1];
            let error = (summary.percentiles[0] - median).unsigned_abs() as f64;
            // 0.5: the middle of a bucket is rounded to an integer.
            prop_assert!(error <= median.unsigned_abs() as f64 * LogHistogram::MAX_ERROR + 0.5);
        }
    }
}
