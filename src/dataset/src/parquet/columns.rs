//! The cells of one column, until they are written as part of a row group.

use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;

use crate::{Cell, ColumnKind};

/// Cells of a column: the values that are not null, and for each row whether it has one.
pub(super) struct ColumnBuffer {
    /// 1 for a value, 0 for null: Parquet's definition levels.
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Numbers(Vec<i64>),
    Texts(Vec<ByteArray>),
    Flags(Vec<bool>),
}

impl ColumnBuffer {
    pub(super) fn new(kind: ColumnKind) -> Self {
        Self {
            levels: Vec::new(),
            values: match kind {
                ColumnKind::Signed | ColumnKind::Unsigned => Values::Numbers(Vec::new()),
                ColumnKind::Text => Values::Texts(Vec::new()),
                ColumnKind::Flag => Values::Flags(Vec::new()),
            },
        }
    }

    /// Appends a cell. A cell that does not fit the buffer, such as text in a column of numbers, is stored as null; in debug
    /// builds, [`crate::Table::rows`] checks that every cell has its column's type.
    pub(super) fn push(&mut self, cell: Cell<'_>) {
        let is_value = match (&mut self.values, cell) {
            (Values::Numbers(values), Cell::Signed(value)) => {
                values.push(value);
                true
            }
            (Values::Numbers(values), Cell::Unsigned(value)) => {
                values.push(value.cast_signed());
                true
            }
            (Values::Texts(values), Cell::Text(text)) => {
                // Rows often repeat the previous text, which is then shared.
                let same = values.last().filter(|last| last.data() == text.as_bytes());
                let value = same.cloned().unwrap_or_else(|| ByteArray::from(text));
                values.push(value);
                true
            }
            (Values::Flags(values), Cell::Flag(value)) => {
                values.push(value);
                true
            }
            _ => false,
        };
        self.levels.push(is_value.into());
    }

    /// Writes the cells and empties the buffer.
    ///
    /// # Errors
    ///
    /// Errors of the output, and [`ParquetError::General`] if `to` is of another type than the buffer.
    pub(super) fn write(&mut self, to: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        // No column is a list.
        let repetition_levels = None;
        match (&mut self.values, to) {
            (Values::Numbers(values), ColumnWriter::Int64ColumnWriter(to)) => {
                to.write_batch(values, levels, repetition_levels)?;
                values.clear();
            }
            (Values::Texts(values), ColumnWriter::ByteArrayColumnWriter(to)) => {
                to.write_batch(values, levels, repetition_levels)?;
                values.clear();
            }
            (Values::Flags(values), ColumnWriter::BoolColumnWriter(to)) => {
                to.write_batch(values, levels, repetition_levels)?;
                values.clear();
            }
            _ => {
                return Err(ParquetError::General(
                    "a column has another type than its schema".to_owned(),
                ));
            }
        }
        self.levels.clear();
        Ok(())
    }
}
