//! Tables: columns and rows of plain data, written as text, as separated values or as JSON.
//!
//! Views that know all rows in advance fill a [`Table`]. Views that print other lines between rows, or endless rows, use
//! only [`TextTable`].

mod json;
mod separated;
mod text;

use std::borrow::Cow;

pub use separated::csv_cell;
pub(crate) use separated::write_separated_titles;
pub use text::{TextStyle, TextTable};

use crate::percent::Percent;

/// Alignment of text in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned.
    Left,
    /// Right-aligned.
    Right,
}

/// The width of a column in text, in characters. Nothing is truncated: a longer cell shifts the rest of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// A fixed width.
    Fixed(usize),
    /// The width of the title. In a [`Table`], whose cells are all known, that of the longest cell if it is wider.
    Fit,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The title, also the key in JSON.
    pub title: Cow<'static, str>,
    /// Alignment of title and cells.
    pub align: Align,
    /// The width.
    pub width: Width,
}

impl Column {
    /// A left-aligned column, as wide as needed.
    pub fn left(title: impl Into<Cow<'static, str>>) -> Self {
        Self {
            title: title.into(),
            align: Align::Left,
            width: Width::Fit,
        }
    }

    /// A right-aligned column for numbers, as wide as needed.
    pub fn right(title: impl Into<Cow<'static, str>>) -> Self {
        Self {
            align: Align::Right,
            ..Self::left(title)
        }
    }

    /// Sets a fixed width.
    #[must_use]
    pub fn fixed(self, width: usize) -> Self {
        Self {
            width: Width::Fixed(width),
            ..self
        }
    }
}

/// The value of a cell in CSV and JSON; the other formats write the text.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    /// The cell's text.
    Text,
    Count(u64),
    /// A number that is not a count.
    Number(f64),
    /// A percentage.
    Share(Percent),
    /// No value.
    Missing,
}

/// A cell: its text and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    text: String,
    value: Value,
}

impl Cell {
    /// A count displayed as `text`, such as `1.5K`.
    pub fn count(value: u64, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            value: Value::Count(value),
        }
    }

    /// A percentage with two decimals, coloured by its size.
    pub fn share(part: u64, total: u64) -> Self {
        let share = Percent::of(part, total);
        Self {
            text: share.to_string(),
            value: Value::Share(share),
        }
    }

    /// A number with one decimal.
    pub fn number(value: f64) -> Self {
        Self {
            text: format!("{value:.1}"),
            value: Value::Number(value),
        }
    }

    /// A missing value: `null` in JSON, empty in other formats.
    pub fn missing() -> Self {
        Self {
            text: String::new(),
            value: Value::Missing,
        }
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Self::count(value, value.to_string())
    }
}

impl From<u32> for Cell {
    fn from(value: u32) -> Self {
        u64::from(value).into()
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            value: Value::Text,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Columns and rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Appends a row with one cell per column. Cells that the row lacks at its end are missing values; surplus cells are dropped.
    pub fn push(&mut self, row: impl Into<Vec<Cell>>) {
        let mut row = row.into();
        row.resize(self.columns.len(), Cell::missing());
        self.rows.push(row);
    }
}

#[cfg(test)]
mod tests;
