//! Exports all lines as text, and finds the function of a line.

use rperf_view::report::{ReportCells, ReportLayout};

use super::entries::EntryLine;
use super::table::TableView;
use super::zoom::ZoomKind;
use crate::theme::Theme;

impl TableView {
    /// Returns the title, the column headings and all lines that are not hidden below a folded one, also those off the screen.
    /// Names are not escaped.
    pub(super) fn text(&mut self, theme: &Theme) -> String {
        let unescaped_cells = self.table().map(|table| {
            let layout = ReportLayout {
                escapes: false,
                ..table.layout.clone()
            };
            ReportCells::new(&table.histogram, &layout)
        });
        // Lines are rendered from `self.cells`, which are unescaped only until the text is complete.
        let escaped_cells = unescaped_cells.map(|cells| std::mem::replace(&mut self.cells, cells));
        let text = self.titles_and_lines(theme);
        if let Some(cells) = escaped_cells {
            self.cells = cells;
        }
        text
    }

    fn titles_and_lines(&self, theme: &Theme) -> String {
        // No columns are scrolled out of view.
        let first_column = 0;
        let heading = self.heading(first_column);
        let mut text = format!("# {}\n#\n# {}\n#\n", self.title(), heading);
        for line in 0..self.entries.len() {
            text.push_str(self.line(line, first_column, theme).to_string().trim_end());
            text.push('\n');
        }
        text
    }

    /// Returns the function of a row or call graph line, and its object if the row shows one. `None` for rows of a hierarchy, and
    /// for rows without a column of functions.
    pub(super) fn function(&self, line: usize) -> Option<(String, Option<String>)> {
        let histogram = self.histogram()?;
        match self.entries.get(line)? {
            EntryLine::Chain(_, chain) => Some((chain.frame.to_string(), None)),
            EntryLine::Row(item, _) if !self.has_levels() => {
                // The row's function and object: the values that a zoom would filter by.
                let symbol = ZoomKind::Symbol.value(histogram, &item.row)?;
                let dso = ZoomKind::Dso.value(histogram, &item.row);
                Some((plain_name(&symbol).to_owned(), dso))
            }
            EntryLine::Row(..) => None,
        }
    }
}

/// Returns a function's name without `[.] ` and other prefixes.
fn plain_name(symbol: &str) -> &str {
    symbol.split_once("] ").map_or(symbol, |(_, name)| name)
}
