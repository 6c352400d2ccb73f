//! The lines of a report: rows that pass the filters, and below unfolded ones their call graphs or children.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use rperf_hist::{Histogram, HistogramRow, NumberField, ReportField};
use rustc_hash::{FxHashMap, FxHashSet};

use super::chain::{self, ChainLine, ChainOptions, LineKey};

/// The rows of one event or group and their unfolded parts.
pub(super) struct Entries {
    /// Rows in order; in a hierarchy, each before its children.
    items: Vec<RowItem>,
    /// The rows that are not hidden below a folded row.
    visible: Vec<VisibleRow>,
    /// Number of lines.
    len: usize,
    options: ChainOptions,
    /// By row key, the keys of the row's unfolded lines, including the row's own key if the row is unfolded.
    open: FxHashMap<LineKey, FxHashSet<LineKey>>,
    /// By row index, its call graph lines; only of rows that are visible and unfolded.
    chains: FxHashMap<usize, Vec<ChainLine>>,
}

/// A visible row.
#[derive(Debug, Clone, Copy)]
struct VisibleRow {
    /// Its index in `Entries::items`.
    index: usize,
    /// Number of its first line.
    line: usize,
}

/// A row; in a hierarchy, a row of one level, which corresponds to one sort key.
#[derive(Debug, Clone)]
pub(super) struct RowItem {
    pub(super) level: usize,
    /// The key of the row above it in the hierarchy; 0 on the first level.
    parent: LineKey,
    pub(super) row: Arc<HistogramRow>,
}

/// A line.
#[derive(Clone, Copy)]
pub(super) enum EntryLine<'e> {
    /// A row, and whether it is unfolded; `None` if there is nothing to unfold.
    Row(&'e RowItem, Option<bool>),
    /// A line of a row's call graph.
    Chain(&'e RowItem, &'e ChainLine),
}

impl Entries {
    /// Builds the lines of rows. Rows and lines that were unfolded in `before` stay unfolded.
    pub(super) fn new(items: Vec<RowItem>, options: ChainOptions, before: Option<Self>) -> Self {
        let mut entries = Self {
            items,
            visible: Vec::new(),
            len: 0,
            options,
            open: before.map(|before| before.open).unwrap_or_default(),
            chains: FxHashMap::default(),
        };
        entries.lay_out();
        entries
    }

    /// Returns the number of lines.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns a line.
    pub(super) fn get(&self, line: usize) -> Option<EntryLine<'_>> {
        let (index, below) = self.find(line)?;
        let item = self.items.get(index)?;
        match below.checked_sub(1) {
            None => Some(EntryLine::Row(item, self.is_unfolded(index))),
            Some(chain_line) => {
                let chain = self.chains.get(&index)?.get(chain_line)?;
                Some(EntryLine::Chain(item, chain))
            }
        }
    }

    /// Returns the row that a line belongs to.
    pub(super) fn row(&self, line: usize) -> Option<&HistogramRow> {
        let (index, _) = self.find(line)?;
        self.items.get(index).map(|item| &*item.row)
    }

    /// Returns the line of the row with this key.
    pub(super) fn line_of(&self, key: LineKey) -> Option<usize> {
        let row = self.visible.iter().find(|visible| {
            let item = self.items.get(visible.index);
            item.is_some_and(|item| row_key(item) == key)
        });
        row.map(|visible| visible.line)
    }

    /// Returns the key of a line's row.
    pub(super) fn key_of(&self, line: usize) -> Option<LineKey> {
        let (index, _) = self.find(line)?;
        self.items.get(index).map(row_key)
    }

    /// Unfolds or folds a line by one level; returns whether anything changed.
    pub(super) fn toggle(&mut self, line: usize) -> bool {
        let Some((index, below)) = self.find(line) else {
            return false;
        };
        let own_key = self.items.get(index).map(row_key).unwrap_or_default();
        let key = match below.checked_sub(1) {
            None => self.is_unfolded(index).map(|_| own_key),
            Some(chain_line) => {
                let lines = self.chains.get(&index);
                lines
                    .and_then(|lines| lines.get(chain_line))
                    .filter(|line| line.is_open.is_some())
                    .map(|line| line.key)
            }
        };
        let Some(key) = key else {
            return false;
        };
        let open = self.open.entry(own_key).or_default();
        if !open.remove(&key) {
            open.insert(key);
        }
        self.lay_out();
        true
    }

    /// Unfolds (`is_open`) or folds the row of a line and everything below the row, and returns the row's line.
    pub(super) fn set_row_and_below(&mut self, line: usize, is_open: bool) -> Option<usize> {
        let (index, below) = self.find(line)?;
        self.set(index, is_open);
        // Children in a hierarchy are also rows.
        let level = self.items.get(index)?.level;
        let mut child = index + 1;
        while self.items.get(child).is_some_and(|item| item.level > level) {
            self.set(child, is_open);
            child += 1;
        }
        self.lay_out();
        Some(line - below)
    }

    /// Whether the row of a line is unfolded.
    pub(super) fn is_row_open(&self, line: usize) -> bool {
        let index = self.find(line).map(|(index, _)| index);
        index.and_then(|index| self.is_unfolded(index)) == Some(true)
    }

    /// Unfolds (`is_open`) or folds all rows.
    pub(super) fn set_all(&mut self, is_open: bool) {
        self.open.clear();
        if is_open {
            (0..self.items.len()).for_each(|index| self.set(index, is_open));
        }
        self.lay_out();
    }

    /// Unfolds (`is_open`) or folds a row with its whole call graph.
    fn set(&mut self, index: usize, is_open: bool) {
        let Some(item) = self.items.get(index) else {
            return;
        };
        let own_key = row_key(item);
        if is_open {
            let mut keys = chain::keys(&item.row);
            keys.insert(own_key);
            self.open.insert(own_key, keys);
        } else {
            self.open.remove(&own_key);
        }
    }

    /// Returns the index of a line's row, and the line's offset from the row's own line.
    fn find(&self, line: usize) -> Option<(usize, usize)> {
        if line >= self.len {
            return None;
        }
        let after = self.visible.partition_point(|visible| visible.line <= line);
        let visible = self.visible.get(after.checked_sub(1)?)?;
        Some((visible.index, line - visible.line))
    }

    /// Whether a row is unfolded; `None` if there is nothing to unfold.
    fn is_unfolded(&self, index: usize) -> Option<bool> {
        let item = self.items.get(index)?;
        let has_children = self
            .items
            .get(index + 1)
            .is_some_and(|next| next.level > item.level);
        let folds = has_children || !item.row.graph.is_empty();
        let own_key = row_key(item);
        let is_open = || {
            let open = self.open.get(&own_key);
            open.is_some_and(|open| open.contains(&own_key))
        };
        folds.then(is_open)
    }

    /// Computes the visible rows and their lines.
    fn lay_out(&mut self) {
        self.visible.clear();
        self.chains.clear();
        let mut line = 0;
        // The level of the last folded row: the rows after it on deeper levels are its hidden children.
        let mut folded_level: Option<usize> = None;
        for index in 0..self.items.len() {
            let Some(item) = self.items.get(index) else {
                break;
            };
            if folded_level.is_some_and(|level| item.level > level) {
                continue;
            }
            let state = match self.open.is_empty() {
                // Saves the lookup. A row without anything to unfold has nothing below it to hide, so it may count as folded.
                true => Some(false),
                false => self.is_unfolded(index),
            };
            folded_level = (state == Some(false)).then_some(item.level);
            self.visible.push(VisibleRow { index, line });
            line += 1;
            if state == Some(true) {
                let open = self.open.get(&row_key(item));
                let no_keys = FxHashSet::default();
                let chain_lines = chain::lines(&item.row, self.options, open.unwrap_or(&no_keys));
                line += chain_lines.len();
                self.chains.insert(index, chain_lines);
            }
        }
        self.len = line;
    }
}

/// Returns the key of a row: it depends on the row's cells and, in a hierarchy, on those of the rows above it.
fn row_key(item: &RowItem) -> LineKey {
    let mut hasher = DefaultHasher::new();
    (item.parent, &item.row.cells).hash(&mut hasher);
    hasher.finish()
}

/// The order of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RowOrder {
    /// The column to order by. `None` for the report's own order or, if `event` is not the leader, for the first column with
    /// numbers.
    pub(super) column: Option<usize>,
    /// The event of a group by whose numbers rows are ordered, as an index into the group.
    pub(super) event: usize,
}

impl RowOrder {
    /// Sorts `rows`, which are in the report's order; rows with equal values keep it.
    fn sort(self, histogram: &Histogram, rows: &mut [Arc<HistogramRow>]) {
        let columns = &histogram.columns;
        let by_number = |rows: &mut [Arc<HistogramRow>], number: NumberField| {
            rows.sort_by_key(|row| Reverse(row.numbers(number).nth(self.event)));
        };
        match self
            .column
            .and_then(|column| Some((column, columns.get(column)?)))
        {
            Some((_, ReportField::Number(number))) => by_number(rows, *number),
            Some((column, ReportField::Key(_))) => {
                let before = columns.get(..column).unwrap_or_default();
                let key_index = before.iter().filter(|field| field.key().is_some()).count();
                rows.sort_by_cached_key(|row| {
                    row.cells.get(key_index).map(|cell| number_and_text(cell))
                });
            }
            None if self.event > 0 => {
                let number = columns.iter().find_map(|field| field.number());
                by_number(rows, number.unwrap_or(NumberField::Own));
            }
            None => {}
        }
    }
}

/// Returns what cells of a column are ordered by: the number with which the cell begins (`u64::MAX` if none), and its text.
fn number_and_text(cell: &str) -> (u64, String) {
    let cell = cell.trim();
    let digits: String = cell.chars().take_while(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(u64::MAX), cell.to_owned())
}

/// Returns the `rows` of `histogram` that `passes` accepts, in `order`; as a hierarchy if `has_levels`.
pub(super) fn items(
    histogram: &Histogram,
    rows: &[Arc<HistogramRow>],
    has_levels: bool,
    order: RowOrder,
    passes: impl Fn(&HistogramRow) -> bool,
) -> Vec<RowItem> {
    let mut rows: Vec<Arc<HistogramRow>> = rows.iter().filter(|row| passes(row)).cloned().collect();
    order.sort(histogram, &mut rows);
    if has_levels {
        let mut columns = histogram.columns.clone();
        if let Some(column) = order.column.filter(|column| *column < columns.len()) {
            // `Histogram::hierarchy` orders the levels above the last by the first column with numbers, so `order.column` is
            // moved to the front. The last level keeps the order of `rows`, which are sorted already. In a hierarchy,
            // `order.column` is never the column of a key: moving one would change the order of the levels.
            let field = columns.remove(column);
            columns.insert(0, field);
        }
        let accepted = Histogram {
            rows: rows.into_iter().map(Arc::unwrap_or_clone).collect(),
            columns,
            sort_event: match order {
                // The report's own order.
                RowOrder {
                    column: None,
                    event: 0,
                } => histogram.sort_event,
                order => order.event,
            },
            ..Histogram::default()
        };
        // By level, the keys of the row added last and of the rows that it is below in the hierarchy.
        let mut path: Vec<LineKey> = Vec::new();
        let items = accepted.hierarchy().into_iter().map(|line| {
            path.truncate(line.level);
            let item = RowItem {
                level: line.level,
                parent: path.last().copied().unwrap_or_default(),
                row: Arc::new(line.row),
            };
            path.push(row_key(&item));
            item
        });
        return items.collect();
    }
    rows.into_iter()
        .map(|row| RowItem {
            level: 0,
            parent: 0,
            row,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_cells_are_sorted_by_value() {
        let mut cells = ["9", "  10", "sh", "cat", "2-4"];
        cells.sort_by_cached_key(|cell| number_and_text(cell));
        assert_eq!(cells, ["2-4", "9", "  10", "cat", "sh"]);
    }
}
