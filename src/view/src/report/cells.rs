//! The cells of a row, padded to their columns, for views that draw cells individually.

use rperf_hist::{ColumnSum, Histogram, HistogramRow};

use super::table::{ColumnKind, ReportLayout, TableColumn, number_cells, push_key_cell};
use crate::percent::{Percent, ShortCount};

/// The columns of a table, from which the cells of its rows are created. The columns of sort keys fit all rows of the table
/// unless widths were given.
pub struct ReportCells {
    columns: Vec<TableColumn>,
}

/// A cell, padded to its column; the last of a row may have no trailing blanks.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportCell {
    /// The text.
    pub text: String,
    /// The percentage, if the cell shows one.
    pub share: Option<f64>,
}

/// The part of a row that a cell belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowPart {
    /// Percentages and counts.
    Numbers,
    /// Sort keys.
    Keys,
}

impl ReportCells {
    /// Returns the columns of `histogram`.
    #[must_use]
    pub fn new(histogram: &Histogram, layout: &ReportLayout) -> Self {
        Self {
            columns: TableColumn::list(histogram, layout),
        }
    }

    /// The number of columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no columns.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The titles of a part's columns, with their column numbers.
    pub fn titles(&self, part: RowPart) -> impl Iterator<Item = (usize, String)> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(move |(_, column)| column.part() == part)
            .map(|(number, column)| (number, column.padded_title()))
    }

    /// The cells of a column in a row. A numeric column has a cell for each event, with percentages of `totals`, and a cell of
    /// blanks if these cells do not fill the column. For the column of a sort key, `key` is the index of the sort key among
    /// those of the row (in a hierarchy, a row has one); otherwise it is not used. Returns no cells if there is no
    /// column with the number `column`.
    #[must_use]
    pub fn cells(
        &self,
        column: usize,
        row: &HistogramRow,
        key: usize,
        totals: &[ColumnSum],
    ) -> Vec<ReportCell> {
        let Some(table_column) = self.columns.get(column) else {
            return Vec::new();
        };
        if table_column.part() == RowPart::Numbers {
            let cells = number_cells(row, totals, table_column).into_iter();
            return cells
                .map(|(text, share)| ReportCell {
                    text,
                    share: share.map(Percent::value),
                })
                .collect();
        }
        let text = row.cells.get(key).map(String::as_str).unwrap_or_default();
        let mut padded = String::new();
        let is_last = column + 1 == self.columns.len();
        push_key_cell(&mut padded, text, table_column, is_last);
        vec![ReportCell {
            text: padded,
            share: None,
        }]
    }
}

impl TableColumn {
    fn part(&self) -> RowPart {
        match self.kind {
            ColumnKind::Number(_) => RowPart::Numbers,
            ColumnKind::Key { .. } => RowPart::Keys,
        }
    }
}

/// A percentage as text with two decimals, `12.34%`, and as a number.
#[must_use]
pub fn share(part: u64, total: u64) -> (String, f64) {
    let share = Percent::of(part, total);
    (share.to_string(), share.value())
}

/// A number of samples in thousands, millions or billions: `452 `, `12K`.
#[must_use]
pub fn short_count(samples: u64) -> String {
    ShortCount(samples).to_string()
}
