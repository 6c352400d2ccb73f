//! Tables, their columns and cells.

use std::io;

use crate::Dataset;

/// The version of the schema. It changes when a column is renamed, removed or gets another meaning; new
/// columns and tables do not change it.
pub const SCHEMA_VERSION: i64 = 1;

/// Type of a column's cells. Every cell may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A signed 64-bit number.
    Signed,
    /// An unsigned 64-bit number: an address, an offset or a size.
    Unsigned,
    /// UTF-8 text.
    Text,
    /// True or false.
    Flag,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name in Parquet and NDJSON.
    pub name: &'static str,
    /// Type of its cells.
    pub kind: ColumnKind,
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: ColumnKind) -> Self {
        Self { name, kind }
    }
}

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// For [`ColumnKind::Signed`].
    Signed(i64),
    /// For [`ColumnKind::Unsigned`].
    Unsigned(u64),
    /// For [`ColumnKind::Text`].
    Text(&'a str),
    /// For [`ColumnKind::Flag`].
    Flag(bool),
}

impl<'a> Cell<'a> {
    /// A time, count or period; values from 2^63 on become `i64::MAX`.
    pub(crate) fn number(value: u64) -> Self {
        Self::Signed(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// The number of a process, thread or CPU; null for `u32::MAX`, which means not recorded.
    pub(crate) fn id(value: u32) -> Self {
        match value {
            u32::MAX => Self::Null,
            id => Self::Signed(id.into()),
        }
    }

    /// Text; null if it is empty.
    pub(crate) fn text_or_null(text: &'a str) -> Self {
        match text {
            "" => Self::Null,
            text => Self::Text(text),
        }
    }

    /// Whether the cell may be in a column of type `kind`.
    pub(crate) fn suits(&self, kind: ColumnKind) -> bool {
        match self {
            Self::Null => true,
            Self::Signed(_) => kind == ColumnKind::Signed,
            Self::Unsigned(_) => kind == ColumnKind::Unsigned,
            Self::Text(_) => kind == ColumnKind::Text,
            Self::Flag(_) => kind == ColumnKind::Flag,
        }
    }
}

/// Receives the cells of a row, one for each column.
pub type RowSink<'s> = dyn FnMut(&[Cell<'_>]) -> io::Result<()> + 's;

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Its name: the folder in a Parquet data set, and the value of the member `table` in NDJSON.
    pub name: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    pub(crate) rows: fn(&Dataset<'_>, &mut RowSink<'_>) -> io::Result<()>,
}

impl Table {
    /// Passes each row to `sink`.
    ///
    /// # Errors
    ///
    /// Errors of `sink`. The first one ends the iteration.
    pub fn rows(&self, dataset: &Dataset<'_>, sink: &mut RowSink<'_>) -> io::Result<()> {
        (self.rows)(dataset, &mut |row| {
            debug_assert!(
                row.len() == self.columns.len()
                    && row
                        .iter()
                        .zip(self.columns)
                        .all(|(cell, column)| cell.suits(column.kind)),
                "a row of {} differs from its columns: {row:?}",
                self.name
            );
            sink(row)
        })
    }
}
