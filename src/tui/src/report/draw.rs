//! Renders the lines of a report.

use ratatui::text::{Line, Span};
use rperf_view::report::{GraphValue, share};

use super::chain::ChainLine;
use super::entries::{EntryLine, RowItem};
use super::table::{TableView, number_of};
use crate::theme::{PercentHeat, Theme};

/// Indentation of a level of a call graph or hierarchy, in columns.
const STEP: usize = 3;

impl TableView {
    /// Returns the headings of the columns from position `first` on; the columns before it are scrolled out of view.
    pub(super) fn heading(&self, first: usize) -> Line<'static> {
        let columns = self.columns().into_iter().skip(first);
        let titles: Vec<String> = columns.map(|(_, title)| title).collect();
        Line::from(Span::raw(format!("  {}", titles.join("  "))))
    }

    /// Renders the line with the index `line`: the columns of a row from position `first` on, or a line of a call graph, which is
    /// not scrolled.
    pub(super) fn line(&self, line: usize, first: usize, theme: &Theme) -> Line<'static> {
        match self.entries.get(line) {
            Some(EntryLine::Row(item, is_open)) => self.row(item, is_open, first, theme),
            Some(EntryLine::Chain(item, chain)) => self.chain(item, chain, theme),
            None => Line::default(),
        }
    }

    fn row(
        &self,
        item: &RowItem,
        is_open: Option<bool>,
        first: usize,
        theme: &Theme,
    ) -> Line<'static> {
        let mut spans = vec![Span::raw(format!("{} ", sign(is_open)))];
        if self.has_levels() {
            spans.push(Span::raw(" ".repeat(item.level * STEP)));
        }
        // The index of the next sort key among the keys of `item.row`; columns of numbers are not counted. In a hierarchy, a row
        // has one key.
        let mut key_index = 0;
        // `place` is a position like `first`; `column` is the index of the column in the report.
        for (place, column) in self.shown_columns(item).into_iter().enumerate() {
            let is_key = self.is_key(column);
            if place >= first {
                if place > first {
                    spans.push(Span::raw("  "));
                }
                let cells = self
                    .cells
                    .cells(column, &item.row, key_index, self.totals());
                // The share is the percentage that the cell shows, if any.
                spans.extend(cells.into_iter().map(|cell| match cell.share {
                    Some(share) => Span::styled(cell.text, theme.heat(PercentHeat::of(share))),
                    None => Span::raw(cell.text),
                }));
            }
            key_index += usize::from(is_key);
        }
        Line::from(spans)
    }

    /// Returns the indices of a row's columns; in a hierarchy, of the numbers and of the level's key.
    fn shown_columns(&self, item: &RowItem) -> Vec<usize> {
        let columns = self.columns().into_iter().map(|(column, _)| column);
        if !self.has_levels() {
            return columns.collect();
        }
        let (keys, mut numbers): (Vec<usize>, Vec<usize>) =
            columns.partition(|column| self.is_key(*column));
        numbers.extend(keys.get(item.level));
        numbers
    }

    /// Whether a column shows a sort key instead of numbers.
    fn is_key(&self, column: usize) -> bool {
        let histogram = self.histogram();
        histogram.is_some_and(|histogram| number_of(histogram, column).is_none())
    }

    fn chain(&self, item: &RowItem, chain: &ChainLine, theme: &Theme) -> Line<'static> {
        let indent = " ".repeat((item.level + chain.depth + 1) * STEP);
        let mut spans = vec![Span::raw(format!("{indent}{} ", sign(chain.is_open)))];
        // `sum` is the line's weight; `total` is the sum of periods that the percentage is relative to.
        if let Some((sum, total)) = chain.share {
            let (percent_text, percent) = share(sum.period, total);
            let value = self.table().map(|table| table.layout.graph_value);
            let text = match value.unwrap_or_default() {
                GraphValue::Percent => percent_text,
                GraphValue::Period => sum.period.to_string(),
                GraphValue::Count => sum.samples.to_string(),
            };
            spans.push(Span::styled(text, theme.heat(PercentHeat::of(percent))));
            spans.push(Span::raw(" "));
        }
        spans.push(Span::raw(chain.frame.to_string()));
        Line::from(spans)
    }
}

/// Returns the fold sign of a line.
fn sign(is_open: Option<bool>) -> char {
    match is_open {
        Some(true) => '-',
        Some(false) => '+',
        None => ' ',
    }
}
