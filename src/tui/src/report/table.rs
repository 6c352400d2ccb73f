//! The view of one table: its rows, unfolded parts and zooms (filters of rows, such as one thread). Rows are those of the
//! histogram, lines those of the screen: shown rows, and call graphs below unfolded rows. The limit is the minimum percentage.

use std::sync::Arc;

use rperf_hist::{ColumnSum, Histogram, HistogramRow, NumberField};
use rperf_view::report::{ReportCells, RowPart, share, short_count};

use super::chain::ChainOptions;
use super::entries::{Entries, RowItem, RowOrder, items};
use super::messages::{ReportTable, ReportTables};
use super::zoom::ZoomFilter;
use crate::list::List;

/// A table and its state.
pub(super) struct TableView {
    report: Arc<ReportTables>,
    /// The table's index in the report.
    number: usize,
    /// The rows of the table, including those that do not pass the zooms and the limit.
    rows: Vec<Arc<HistogramRow>>,
    pub(super) cells: ReportCells,
    pub(super) entries: Entries,
    pub(super) list: List,
    pub(super) zooms: Vec<ZoomFilter>,
    /// The limit: rows with a lower percentage are not shown.
    pub(super) min_percent: f64,
    /// Whether percentages are relative to the sum of the shown rows.
    pub(super) is_relative_to_visible: bool,
    /// The order of the rows.
    pub(super) order: RowOrder,
    /// Sums of the rows that pass the zooms and the limit, by event.
    visible_sums: Vec<ColumnSum>,
}

impl TableView {
    /// Creates the view of a table. What the user chose in the view `before` is kept: unfolded rows, zooms, the limit, what
    /// percentages are relative to, the order and the cursor's row. `None` if there is no such table.
    pub(super) fn new(
        report: &Arc<ReportTables>,
        number: usize,
        before: Option<Self>,
    ) -> Option<Self> {
        let table = report.tables.get(number)?;
        let options = ChainOptions {
            graph: table.layout.graph_form,
            // As in perf, call graphs relate to all samples of the first event, including those without a row.
            total: table.histogram.all.period,
        };
        // `refresh` below adds the lines, and takes from the entries of `before` only what is unfolded.
        let no_entries = Entries::new(Vec::new(), options, None);
        let mut view = Self {
            report: Arc::clone(report),
            number,
            rows: table.histogram.rows.iter().cloned().map(Arc::new).collect(),
            cells: ReportCells::new(&table.histogram, &table.layout),
            entries: no_entries,
            list: List::new(0),
            zooms: Vec::new(),
            min_percent: table.layout.min_percent,
            is_relative_to_visible: false,
            order: RowOrder::default(),
            visible_sums: Vec::new(),
        };
        let mut cursor = None;
        if let Some(before) = before {
            let line = before.list.cursor();
            cursor = line.and_then(|line| before.entries.key_of(line));
            view.list = before.list;
            view.zooms = before.zooms;
            view.min_percent = before.min_percent;
            view.is_relative_to_visible = before.is_relative_to_visible;
            view.order = before.order;
            view.entries = before.entries;
        }
        view.refresh();
        if let Some(line) = cursor.and_then(|key| view.entries.line_of(key)) {
            view.list.follow(line);
        }
        Some(view)
    }

    pub(super) fn table(&self) -> Option<&ReportTable> {
        self.report.tables.get(self.number)
    }

    pub(super) fn histogram(&self) -> Option<&Histogram> {
        self.table().map(|table| &table.histogram)
    }

    /// Recomputes rows and lines after zooms, the limit, the order or what percentages are relative to have changed.
    pub(super) fn refresh(&mut self) {
        let report = Arc::clone(&self.report);
        let Some(table) = report.tables.get(self.number) else {
            return;
        };
        let histogram = &table.histogram;
        // The limit relates to the first event's total in the histogram, even if the percentages on the screen are relative to
        // the shown rows.
        let total = histogram.totals.first().copied().unwrap_or_default();
        let passes = |row: &HistogramRow| {
            let (_, percent) = share(row.weights.total, total.period);
            percent >= self.min_percent && self.zooms.iter().all(|zoom| zoom.passes(row))
        };
        let items = items(
            histogram,
            &self.rows,
            table.layout.hierarchy,
            self.order,
            passes,
        );
        self.visible_sums = sums(&items, histogram.totals.len());
        let options = ChainOptions {
            graph: table.layout.graph_form,
            total: match self.is_relative_to_visible {
                true => self.visible_sums.first().map_or(0, |sum| sum.period),
                false => histogram.all.period,
            },
        };
        let no_entries = Entries::new(Vec::new(), options, None);
        let before = std::mem::replace(&mut self.entries, no_entries);
        self.entries = Entries::new(items, options, Some(before));
        self.list.set_len(self.entries.len());
    }

    /// Returns the totals that percentages are relative to, by event.
    pub(super) fn totals(&self) -> &[ColumnSum] {
        match self.is_relative_to_visible {
            true => &self.visible_sums,
            false => self.histogram().map_or(&[], |histogram| &histogram.totals),
        }
    }

    /// Returns the first line of the screen. Its counts are the histogram's totals, which may include samples without a row; with
    /// zooms, the sums of the rows that pass them and the limit.
    pub(super) fn title(&self) -> String {
        let Some(table) = self.table() else {
            return String::new();
        };
        let total: ColumnSum = match self.zooms.is_empty() {
            true => table.histogram.total(),
            false => self.visible_sums.iter().copied().sum(),
        };
        let plural = if table.plural { "s" } else { "" };
        let mut title = format!(
            "Samples: {} of event{plural} '{}'{}, Event count (approx.): {}",
            short_count(total.samples),
            table.name,
            table.live.as_ref().map_or("", |live| &live.rate),
            total.period
        );
        if let Some(live) = &table.live {
            title.push_str(&live.losses);
        }
        for zoom in &self.zooms {
            title.push_str(", ");
            title.push_str(&zoom.title());
        }
        if let Some(column) = self.order.column
            && let Some((_, name)) = self.columns().into_iter().find(|(at, _)| *at == column)
        {
            title.push_str(&format!(", ordered by {}", name.trim()));
        }
        title
    }

    /// Orders rows by the next column; after the last column, in the report's own order. In a hierarchy, skips the columns of
    /// sort keys: its levels are ordered by columns of numbers only.
    pub(super) fn order_by_next(&mut self) {
        let columns = self
            .histogram()
            .map_or(&[][..], |histogram| &histogram.columns);
        let has_levels = self.has_levels();
        let next = self.order.column.map_or(0, |column| column + 1);
        let mut rest = columns.iter().enumerate().skip(next);
        let usable = rest.find(|(_, field)| !has_levels || field.number().is_some());
        self.order.column = usable.map(|(column, _)| column);
        self.refresh();
    }

    /// Returns the indices and titles of the columns; in a hierarchy, numbers come first.
    pub(super) fn columns(&self) -> Vec<(usize, String)> {
        let mut columns: Vec<_> = self.cells.titles(RowPart::Numbers).collect();
        columns.extend(self.cells.titles(RowPart::Keys));
        if !self.has_levels() {
            columns.sort_by_key(|(index, _)| *index);
        }
        columns
    }

    /// Whether rows form a hierarchy.
    pub(super) fn has_levels(&self) -> bool {
        self.table().is_some_and(|table| table.layout.hierarchy)
    }
}

/// Returns the sums of rows, by event. Only rows on the top level are added: those on lower levels of a hierarchy are included in
/// them.
fn sums(items: &[RowItem], events: usize) -> Vec<ColumnSum> {
    let mut sums = vec![ColumnSum::default(); events];
    for item in items.iter().filter(|item| item.level == 0) {
        let weights = std::iter::once(&item.row.weights).chain(&item.row.others);
        for (sum, weights) in sums.iter_mut().zip(weights) {
            sum.period = sum.period.saturating_add(weights.own);
            sum.samples += weights.samples;
            sum.latency = sum.latency.saturating_add(weights.latency);
        }
    }
    sums
}

/// Returns the kind of number that a column shows; `None` if it shows a key.
pub(super) fn number_of(histogram: &Histogram, column: usize) -> Option<NumberField> {
    histogram.columns.get(column)?.number()
}
