//! One table on the screen: its rows, what is unfolded, what is zoomed into.

use std::sync::Arc;

use rperf_hist::{Field, Histogram, Number, Row, Sum};
use rperf_view::report::{Cells, Part, rough, share};

use super::chain::Form;
use super::entries::{Entries, Item, items};
use super::news::{Report, Table};
use super::zoom::Zoom;
use crate::list::List;

/// A table and its state.
pub(super) struct View {
    report: Arc<Report>,
    /// Which of the report's tables it is.
    number: usize,
    rows: Vec<Arc<Row>>,
    pub(super) cells: Cells,
    pub(super) entries: Entries,
    pub(super) list: List,
    pub(super) zooms: Vec<Zoom>,
    /// Rows below this share are not seen, in percent.
    pub(super) least: f64,
    /// Whether shares are of what is seen.
    pub(super) is_relative: bool,
    /// The event of a group that rows are ordered by.
    pub(super) by: usize,
    /// Samples and events of what is seen, by event.
    seen: Vec<Sum>,
}

impl View {
    /// A table of a report; what was unfolded and zoomed into in the view before stays so, and the cursor on its row.
    pub(super) fn new(report: &Arc<Report>, number: usize, before: Option<Self>) -> Option<Self> {
        let table = report.tables.get(number)?;
        let form = Form {
            graph: table.layout.graph_form,
            whole: table.histogram.all.period,
        };
        let mut view = Self {
            report: Arc::clone(report),
            number,
            rows: table.histogram.rows.iter().cloned().map(Arc::new).collect(),
            cells: Cells::new(&table.histogram, &table.layout),
            entries: Entries::new(Vec::new(), form, None),
            list: List::new(0),
            zooms: Vec::new(),
            least: table.layout.min_percent,
            is_relative: false,
            by: 0,
            seen: Vec::new(),
        };
        let mut cursor = None;
        if let Some(before) = before {
            let line = before.list.cursor();
            cursor = line.and_then(|line| before.entries.key_of(line));
            view.list = before.list;
            view.zooms = before.zooms;
            view.least = before.least;
            view.is_relative = before.is_relative;
            view.by = before.by;
            view.entries = before.entries;
        }
        view.refresh();
        if let Some(line) = cursor.and_then(|key| view.entries.line_of(key)) {
            view.list.follow(line);
        }
        Some(view)
    }

    pub(super) fn table(&self) -> Option<&Table> {
        self.report.tables.get(self.number)
    }

    pub(super) fn histogram(&self) -> Option<&Histogram> {
        self.table().map(|table| &table.histogram)
    }

    /// Looks for the rows to be seen anew: after zooms, limits or the order have changed.
    pub(super) fn refresh(&mut self) {
        let report = Arc::clone(&self.report);
        let Some(table) = report.tables.get(self.number) else {
            return;
        };
        let histogram = &table.histogram;
        let whole = histogram.wholes.first().copied().unwrap_or_default();
        let passes = |row: &Row| {
            share(row.weights.total, whole.period).1 >= self.least
                && self.zooms.iter().all(|zoom| zoom.passes(row))
        };
        let rows = (histogram, self.rows.as_slice());
        let items = items(rows, table.layout.hierarchy, self.by, passes);
        self.seen = sums(&items, histogram.wholes.len());
        let form = Form {
            graph: table.layout.graph_form,
            whole: match self.is_relative {
                true => self.seen.first().map_or(0, |sum| sum.period),
                false => histogram.all.period,
            },
        };
        let before = std::mem::replace(&mut self.entries, Entries::new(Vec::new(), form, None));
        self.entries = Entries::new(items, form, Some(before));
        self.list.set_len(self.entries.len());
    }

    /// What shares are of, by event.
    pub(super) fn wholes(&self) -> &[Sum] {
        match self.is_relative {
            true => &self.seen,
            false => self.histogram().map_or(&[], |histogram| &histogram.wholes),
        }
    }

    /// The first line.
    pub(super) fn title(&self) -> String {
        let Some(table) = self.table() else {
            return String::new();
        };
        let whole = match self.zooms.is_empty() {
            true => table.histogram.whole(),
            false => self.seen.iter().fold(Sum::default(), |all, sum| Sum {
                period: all.period.saturating_add(sum.period),
                samples: all.samples + sum.samples,
                latency: all.latency.saturating_add(sum.latency),
            }),
        };
        let plural = if table.plural { "s" } else { "" };
        let mut title = format!(
            "Samples: {} of event{plural} '{}'{}, Event count (approx.): {}",
            rough(whole.samples),
            table.name,
            table.live.as_ref().map_or("", |live| &live.rate),
            whole.period
        );
        if let Some(live) = &table.live {
            title.push_str(&live.losses);
        }
        for zoom in &self.zooms {
            title.push_str(", ");
            title.push_str(&zoom.title());
        }
        title
    }

    /// The columns, those of numbers first where rows have levels.
    pub(super) fn columns(&self) -> Vec<(usize, String)> {
        let mut columns: Vec<_> = self.cells.titles(Part::Numbers).collect();
        columns.extend(self.cells.titles(Part::Keys));
        if !self.has_levels() {
            columns.sort_by_key(|(number, _)| *number);
        }
        columns
    }

    /// Whether rows have levels.
    pub(super) fn has_levels(&self) -> bool {
        self.table().is_some_and(|table| table.layout.hierarchy)
    }
}

/// Samples and events of rows, by event.
fn sums(items: &[Item], events: usize) -> Vec<Sum> {
    let mut sums = vec![Sum::default(); events];
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

/// Whether a column is one of numbers.
pub(super) fn is_number(histogram: &Histogram, column: usize) -> Option<Number> {
    match histogram.columns.get(column)? {
        Field::Number(number) => Some(*number),
        Field::Key(_) => None,
    }
}
