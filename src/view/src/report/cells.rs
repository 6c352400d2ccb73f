//! The cells of a row one by one, as wide as in the table: for views that draw them themselves.

use rperf_hist::{Histogram, Row, Sum};

use super::table::{Column, Kind, Layout, key_cell, number_cells};
use crate::percent::{Percent, Rough};

/// The columns of a table, with widths that fit all its rows.
pub struct Cells {
    columns: Vec<Column>,
}

/// A cell, padded to its column.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// What stands there.
    pub text: String,
    /// The share that it is, in percent.
    pub share: Option<f64>,
}

/// Which part of a row cells are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Shares and counts.
    Numbers,
    /// What sort keys show.
    Keys,
}

impl Cells {
    /// The columns of `histogram`.
    #[must_use]
    pub fn new(histogram: &Histogram, layout: &Layout) -> Self {
        Self {
            columns: Column::list(histogram, layout),
        }
    }

    /// How many columns there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The titles of one part's columns, with the number of each column.
    pub fn titles(&self, part: Part) -> impl Iterator<Item = (usize, String)> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(move |(_, column)| column.part() == part)
            .map(|(number, column)| (number, column.title()))
    }

    /// The cells of a column in a row, one for each event if it is one of numbers; shares are of `wholes`. `key` is the
    /// number of the row's cell, if it is one of keys.
    #[must_use]
    pub fn cells(&self, column: usize, row: &Row, key: usize, wholes: &[Sum]) -> Vec<Cell> {
        let Some(found) = self.columns.get(column) else {
            return Vec::new();
        };
        if found.part() == Part::Numbers {
            let cells = number_cells(row, wholes, found).into_iter();
            return cells
                .map(|(text, share)| Cell {
                    text,
                    share: share.map(Percent::value),
                })
                .collect();
        }
        let text = row.cells.get(key).map(String::as_str).unwrap_or_default();
        let mut padded = String::new();
        key_cell(&mut padded, text, found, column + 1 == self.columns.len());
        vec![Cell {
            text: padded,
            share: None,
        }]
    }
}

impl Column {
    fn part(&self) -> Part {
        match self.kind {
            Kind::Number(_) => Part::Numbers,
            Kind::Key { .. } => Part::Keys,
        }
    }
}

/// A share with two decimals, `12.34%`.
#[must_use]
pub fn share(part: u64, whole: u64) -> (String, f64) {
    let share = Percent::of(part, whole);
    (share.to_string(), share.value())
}

/// A number of samples cut to thousands, millions or billions: `452 `, `12K`.
#[must_use]
pub fn rough(samples: u64) -> String {
    Rough(samples).to_string()
}
