//! A JSON object in each line, with the name of its table first. Null cells are left out.

use std::io::{self, Write};

use crate::{Cell, Column, Dataset, TABLES, Table};

/// Writes all tables, one after the other.
///
/// # Errors
///
/// Errors of `out`.
pub fn write(dataset: &Dataset<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut line = Vec::new();
    for table in &TABLES {
        table.rows(dataset, &mut |row| {
            line.clear();
            push_row(&mut line, table, row)?;
            out.write_all(&line)
        })?;
    }
    Ok(())
}

fn push_row(line: &mut Vec<u8>, table: &Table, row: &[Cell<'_>]) -> io::Result<()> {
    write!(line, "{{\"table\":\"{}\"", table.name)?;
    for (Column { name, .. }, cell) in table.columns.iter().zip(row) {
        if *cell == Cell::Null {
            continue;
        }
        // Names of columns need no escaping.
        write!(line, ",\"{name}\":")?;
        match cell {
            Cell::Null => {}
            Cell::Signed(value) => write!(line, "{value}")?,
            Cell::Unsigned(value) => write!(line, "{value}")?,
            Cell::Flag(value) => write!(line, "{value}")?,
            Cell::Text(text) => serde_json::to_writer(&mut *line, text)?,
        }
    }
    line.extend_from_slice(b"}\n");
    Ok(())
}
