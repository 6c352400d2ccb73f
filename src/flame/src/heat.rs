//! Heat maps: how often something happened, by time from left to right and by a second scale from the bottom up.

mod svg;

use rustc_hash::FxHashMap;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// What the rows of a heat map are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Parts of the time of a column: the picture is read column by column, each from the bottom up.
    Offset,
    /// Durations, each row of so many nanoseconds more; those that are too long for the picture are in the last row.
    Duration(u64),
}

/// Counts in a grid.
#[derive(Debug, Clone)]
pub struct Heat {
    /// The line above it.
    pub title: String,
    /// What is counted: `samples`.
    pub unit: String,
    scale: Scale,
    /// Nanoseconds of the recording's clock at which the first column begins.
    start: u64,
    /// Nanoseconds of a column.
    column: u64,
    rows: u32,
    columns: u64,
    counts: FxHashMap<(u64, u32), u64>,
}

impl Heat {
    /// Columns of a second from the second of `first` to that of `last`, each in so many rows.
    #[must_use]
    pub fn of_seconds(first: u64, last: u64, rows: u32) -> Self {
        let start = first - first % SECOND;
        Self::new(Scale::Offset, (start, last), SECOND, rows)
    }

    /// So many columns, from `first` to `last`, and rows that reach up to `most` nanoseconds, with one more for what is longer.
    #[must_use]
    pub fn of_durations((first, last): (u64, u64), columns: u64, most: u64, rows: u32) -> Self {
        let column = (last - first) / columns.max(1) + 1;
        let row = most / u64::from(rows.max(1)) + 1;
        Self::new(Scale::Duration(row), (first, last), column, rows + 1)
    }

    fn new(scale: Scale, (start, last): (u64, u64), column: u64, rows: u32) -> Self {
        Self {
            title: String::new(),
            unit: String::new(),
            scale,
            start,
            column,
            rows: rows.max(1),
            columns: last.saturating_sub(start) / column + 1,
            counts: FxHashMap::default(),
        }
    }

    /// Counts a moment.
    pub fn add(&mut self, time: u64) {
        let since = time.saturating_sub(self.start);
        let row = u32::try_from(since % self.column / self.slot()).unwrap_or(u32::MAX);
        self.count(since, row.min(self.rows - 1));
    }

    /// Nanoseconds of a cell, where rows are parts of columns.
    fn slot(&self) -> u64 {
        (self.column / u64::from(self.rows)).max(1)
    }

    /// Counts something that ended at `time` and took so many nanoseconds.
    pub fn add_duration(&mut self, time: u64, duration: u64) {
        let Scale::Duration(row) = self.scale else {
            return self.add(time);
        };
        let top = self.rows - 1;
        let row = u32::try_from(duration / row).unwrap_or(top).min(top);
        self.count(time.saturating_sub(self.start), row);
    }

    fn count(&mut self, since: u64, row: u32) {
        let column = (since / self.column).min(self.columns - 1);
        *self.counts.entry((column, row)).or_default() += 1;
    }

    /// Adds the counts of the same grid.
    pub fn merge(&mut self, other: Self) {
        for (cell, count) in other.counts {
            *self.counts.entry(cell).or_default() += count;
        }
    }

    /// All that was counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The cells that are not empty, by column and row.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_column_and_its_parts_are_rows() {
        let mut heat = Heat::of_seconds(5 * SECOND + 7, 8 * SECOND, 50);
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
    fn what_takes_too_long_is_in_the_last_row() {
        let mut heat = Heat::of_durations((100, 199), 10, 1000, 10);
        assert_eq!((heat.column, heat.columns, heat.rows), (10, 10, 11));
        for (time, duration) in [(100, 0), (109, 100), (110, 101), (199, 5000)] {
            heat.add_duration(time, duration);
        }
        assert_eq!(heat.cells(), [((0, 0), 2), ((1, 1), 1), ((9, 10), 1)]);
    }

    #[test]
    fn parts_add_up() {
        let mut whole = Heat::of_seconds(0, SECOND, 2);
        let mut parts = [whole.clone(), whole.clone()];
        for time in [1, 2, SECOND / 2, SECOND] {
            whole.add(time);
            parts[(time % 2) as usize].add(time);
        }
        let [mut first, second] = parts;
        first.merge(second);
        assert_eq!((first.cells(), first.total()), (whole.cells(), 4));
    }
}
