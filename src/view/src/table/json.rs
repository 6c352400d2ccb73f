//! Tables as JSON.

use std::io::{self, Write};

use super::{Cell, Table, Value};

impl Table {
    /// Writes an array with an object per row, one per line, without a newline at the end. Keys are the titles of columns, in
    /// their order; numbers are not rounded, shares are in percent, missing values are `null`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"[")?;
        for (number, row) in self.rows.iter().enumerate() {
            out.write_all(if number == 0 { b"\n{" } else { b",\n{" })?;
            for (index, (column, cell)) in self.columns.iter().zip(row).enumerate() {
                if index > 0 {
                    out.write_all(b",")?;
                }
                serde_json::to_writer(&mut *out, &*column.title)?;
                out.write_all(b":")?;
                write_value(cell, out)?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"]")
    }
}

fn write_value(cell: &Cell, out: &mut dyn Write) -> io::Result<()> {
    match cell.value {
        Value::Text => serde_json::to_writer(out, &cell.text)?,
        Value::Count(count) => serde_json::to_writer(out, &count)?,
        Value::Number(number) => serde_json::to_writer(out, &number)?,
        Value::Share(share) => serde_json::to_writer(out, &share.value())?,
        Value::Missing => out.write_all(b"null")?,
    }
    Ok(())
}
