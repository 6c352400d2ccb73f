//! All lines as text.

use rperf_view::report::{Cells, Layout};

use super::entries::Entry;
use super::table::View;
use super::zoom::Kind;
use crate::theme::Theme;

impl View {
    /// Title, headings and all rows with what is unfolded of them, as on the screen; names are as they were recorded.
    pub(super) fn text(&mut self, theme: &Theme) -> String {
        let unescaped = self.table().map(|table| {
            let layout = Layout {
                escapes: false,
                ..table.layout.clone()
            };
            Cells::new(&table.histogram, &layout)
        });
        let of_screen = unescaped.map(|cells| std::mem::replace(&mut self.cells, cells));
        let text = self.lines(theme);
        if let Some(cells) = of_screen {
            self.cells = cells;
        }
        text
    }

    fn lines(&self, theme: &Theme) -> String {
        let mut text = format!("# {}\n#\n# {}\n#\n", self.title(), self.heading(0));
        for line in 0..self.entries.len() {
            text.push_str(self.line(line, 0, theme).to_string().trim_end());
            text.push('\n');
        }
        text
    }

    /// The function of a line, as rows or call graphs show it; its object where that is told.
    pub(super) fn function(&self, line: usize) -> Option<(String, Option<String>)> {
        let histogram = self.histogram()?;
        match self.entries.get(line)? {
            Entry::Chain(_, chain) => Some((chain.frame.to_string(), None)),
            Entry::Row(item, _) if !self.has_levels() => {
                let symbol = Kind::Symbol.value(histogram, &item.row)?;
                let dso = Kind::Dso.value(histogram, &item.row);
                Some((bare(&symbol).to_owned(), dso))
            }
            Entry::Row(..) => None,
        }
    }
}

/// A function's name without `[.] ` and what else stands before it.
fn bare(symbol: &str) -> &str {
    symbol.split_once("] ").map_or(symbol, |(_, name)| name)
}
