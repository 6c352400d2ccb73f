//! Tables as separated values.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{Column, Table, Value};

/// Writes a line with `#` and the column titles, with separators between them.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_separated_titles(
    out: &mut dyn Write,
    titles: &[&str],
    separator: &str,
) -> io::Result<()> {
    writeln!(out, "# {}", titles.join(separator))
}

impl Table {
    /// Writes the table for `-t SEPARATOR`: the column titles after `#` if `with_titles`, and cells without padding (perf pads
    /// them). Separators within cells are replaced by dots, if the separator is not empty.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_separated(
        &self,
        out: &mut dyn Write,
        separator: &str,
        with_titles: bool,
    ) -> io::Result<()> {
        if with_titles {
            let titles: Vec<&str> = self.columns.iter().map(|column| &*column.title).collect();
            write_separated_titles(out, &titles, separator)?;
        }
        for row in &self.rows {
            let cells = row.iter().map(|cell| match separator {
                "" => Cow::Borrowed(&*cell.text),
                _ => Cow::Owned(cell.text.replace(separator, ".")),
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(separator))?;
        }
        Ok(())
    }

    /// Writes the table as CSV (RFC 4180, but lines end in LF): titles, then one line per row. Numbers are not rounded, shares
    /// are in percent; cells with a comma, a quote or a line break are quoted.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let title = |column: &Column| csv_cell(&column.title).into_owned();
        let titles: Vec<String> = self.columns.iter().map(title).collect();
        writeln!(out, "{}", titles.join(","))?;
        for row in &self.rows {
            let cells = row.iter().map(|cell| match cell.value {
                Value::Text => csv_cell(&cell.text).into_owned(),
                Value::Count(count) => count.to_string(),
                Value::Number(number) => number.to_string(),
                Value::Share(share) => share.value().to_string(),
                Value::Missing => String::new(),
            });
            writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// Returns a cell as CSV (RFC 4180): in quotes if it contains a comma, a quote or a line break.
#[must_use]
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}
