//! Heat maps: counts by time from left to right, and by another scale ([`HeatScale`]) from bottom to top.

mod svg;

use rustc_hash::FxHashMap;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// The vertical scale of a heat map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeatScale {
    /// Time since the start of the column: the column starts at the bottom and ends at the top.
    Offset,
    /// Durations.
    Duration,
}

/// A grid of counts.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// The counted unit, such as `samples`.
    pub unit: String,
    scale: HeatScale,
    /// Start of the first column in nanoseconds of the recording's clock.
    start: u64,
    /// Duration of a column in nanoseconds.
    column_duration: u64,
    rows: u32,
    columns: u64,
    /// The lower edge of each row in nanoseconds, ascending; empty for [`HeatScale::Offset`].
    edges: Vec<u64>,
    /// By column and row.
    counts: FxHashMap<(u64, u32), u64>,
}

impl HeatMap {
    /// Creates columns of a second each, from the second of `first` to that of `last`, with `rows` rows. Times are in
    /// nanoseconds.
    #[must_use]
    pub fn of_seconds(first: u64, last: u64, rows: u32) -> Self {
        let start = first - first % SECOND;
        Self::new(HeatScale::Offset, start, last, SECOND, rows)
    }

    /// Creates at most `columns` columns from `first` to `last`, and a row from each of the `edges` to the next. Times and edges
    /// are in nanoseconds. The first row also counts shorter durations; the last row counts all durations from the last edge.
    #[must_use]
    pub fn of_durations(first: u64, last: u64, columns: u64, mut edges: Vec<u64>) -> Self {
        let column_duration = last.saturating_sub(first) / columns.max(1) + 1;
        edges.sort_unstable();
        edges.dedup();
        let rows = u32::try_from(edges.len()).unwrap_or(u32::MAX);
        Self {
            edges,
            ..Self::new(HeatScale::Duration, first, last, column_duration, rows)
        }
    }

    fn new(scale: HeatScale, start: u64, last: u64, column_duration: u64, rows: u32) -> Self {
        Self {
            title: String::new(),
            unit: String::new(),
            scale,
            start,
            column_duration,
            rows: rows.max(1),
            columns: last.saturating_sub(start) / column_duration + 1,
            edges: Vec::new(),
            counts: FxHashMap::default(),
        }
    }

    /// Counts an event at `time`, in nanoseconds of the recording's clock. Only for maps with [`HeatScale::Offset`]. Times
    /// outside of the map are counted in its first or last column.
    pub fn add(&mut self, time: u64) {
        let since = time.saturating_sub(self.start);
        let row = u32::try_from(since % self.column_duration / self.slot()).unwrap_or(u32::MAX);
        self.count(since, row.min(self.rows - 1));
    }

    /// Duration of a row's part of a column, in nanoseconds, in maps with [`HeatScale::Offset`].
    fn slot(&self) -> u64 {
        (self.column_duration / u64::from(self.rows)).max(1)
    }

    /// Counts an interval that ended at `time` after `duration` nanoseconds. Maps with [`HeatScale::Offset`] ignore the duration.
    pub fn add_duration(&mut self, time: u64, duration: u64) {
        if self.scale == HeatScale::Offset {
            return self.add(time);
        }
        let after = self.edges.partition_point(|edge| *edge <= duration);
        let row = u32::try_from(after.saturating_sub(1)).unwrap_or(u32::MAX);
        self.count(time.saturating_sub(self.start), row);
    }

    /// Counts an event `since` nanoseconds after the start of the map.
    fn count(&mut self, since: u64, row: u32) {
        let column = (since / self.column_duration).min(self.columns - 1);
        *self.counts.entry((column, row)).or_default() += 1;
    }

    /// Adds the counts of a map with the same rows and columns.
    pub fn merge(&mut self, other: Self) {
        for (cell, count) in other.counts {
            *self.counts.entry(cell).or_default() += count;
        }
    }

    /// Sum of all counts.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The non-empty cells, by column and row.
    fn cells(&self) -> Vec<((u64, u32), u64)> {
        let mut cells: Vec<_> = self
            .counts
            .iter()
            .map(|(cell, count)| (*cell, *count))
            .collect();
        cells.sort_unstable();
        cells
    }
}

/// Returns the lower edges of `rows` rows of equal size for 0 to `most` nanoseconds (inclusive), and of one more row for longer
/// durations.
#[must_use]
pub fn linear_edges(most: u64, rows: u32) -> Vec<u64> {
    let row_size = most / u64::from(rows.max(1)) + 1;
    (0..=u64::from(rows))
        .map(|row| row.saturating_mul(row_size))
        .collect()
}

/// Returns the lower edges of `rows` rows from `least` to `most` nanoseconds, each edge the same multiple of the one before, and
/// of one more row for durations from `most`. Edges are rounded, and equal ones are merged.
#[must_use]
pub fn logarithmic_edges(least: u64, most: u64, rows: u32) -> Vec<u64> {
    let least = least.max(1);
    let log_ratio = (most.max(least) as f64 / least as f64).ln() / f64::from(rows.max(1));
    let edge = |row: u32| (least as f64 * (log_ratio * f64::from(row)).exp()).round() as u64;
    let mut edges: Vec<u64> = (0..=rows).map(edge).collect();
    edges.dedup();
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_column_and_its_parts_are_rows() {
        let mut heat = HeatMap::of_seconds(5 * SECOND + 7, 8 * SECOND, 50);
        assert_eq!((heat.start, heat.columns), (5 * SECOND, 4));
        for time in [
            5 * SECOND,
            5 * SECOND + 19_999_999,
            6 * SECOND + 20_000_000,
            8 * SECOND - 1,
        ] {
            heat.add(time);
        }
        assert_eq!(heat.cells(), [((0, 0), 2), ((1, 1), 1), ((2, 49), 1)]);
    }

    #[test]
    fn durations_beyond_the_range_are_in_the_last_row() {
        let edges = linear_edges(1000, 10);
        let mut heat = HeatMap::of_durations(100, 199, 10, edges);
        assert_eq!(
            (heat.column_duration, heat.columns, heat.rows),
            (10, 10, 11)
        );
        for (time, duration) in [(100, 0), (109, 100), (110, 101), (199, 5000)] {
            heat.add_duration(time, duration);
        }
        assert_eq!(heat.cells(), [((0, 0), 2), ((1, 1), 1), ((9, 10), 1)]);
    }

    #[test]
    fn edges_of_logarithmic_rows_have_equal_ratios() {
        let edges = logarithmic_edges(1000, 1_000_000, 3);
        assert_eq!(edges, [1000, 10_000, 100_000, 1_000_000]);
        let mut heat = HeatMap::of_durations(0, 9, 10, edges);
        for duration in [1, 999, 1000, 9_999, 10_000, 999_999, 1_000_000, u64::MAX] {
            heat.add_duration(0, duration);
        }
        let counts: Vec<u64> = heat.cells().into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [4, 1, 1, 2]);
        // No row is narrower than a nanosecond.
        assert_eq!(logarithmic_edges(1, 3, 50), [1, 2, 3]);
        assert_eq!(logarithmic_edges(0, 0, 2), [1]);
    }

    #[test]
    fn parts_add_up() {
        let mut unsplit = HeatMap::of_seconds(0, SECOND, 2);
        // Each of these maps counts some of the events, as on several threads.
        let mut parts = [unsplit.clone(), unsplit.clone()];
        for time in [1, 2, SECOND / 2, SECOND] {
            unsplit.add(time);
            parts[(time % 2) as usize].add(time);
        }
        let [mut first, second] = parts;
        first.merge(second);
        assert_eq!((first.cells(), first.total()), (unsplit.cells(), 4));
    }
}
