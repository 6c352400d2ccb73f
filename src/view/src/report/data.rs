//! Reports for programs: the rows of all tables as JSON or CSV, with numbers that are not rounded.

use std::io::{self, Write};

use rperf_hist::{BranchCounts, Histogram, HistogramRow, NumberField, ReportField};

use crate::percent::Percent;
use crate::table::{Cell, Column, Table};

/// The version of the JSON: it changes if a member is removed or changes its meaning, not if one is added.
const VERSION: u32 = 1;

/// A report as data. Each row has the name of the event, a cell for each column of the tables, titled with the name of its field,
/// and the constant cells of [`Self::constant_columns`].
#[derive(Debug, Clone, Copy)]
pub struct ReportData<'a> {
    /// The names of all events of the recording.
    pub events: &'a [&'a str],
    /// The tables, with the same columns.
    pub tables: &'a [&'a Histogram],
    /// Rows below this percentage of the total are hidden.
    pub min_percent: f64,
    /// Columns that have the same value in all rows, with that value.
    pub constant_columns: &'a [(&'a str, &'a str)],
    /// Number of lost samples.
    pub lost: u64,
    /// Numbers of branches by type.
    pub branches: &'a BranchCounts,
}

impl ReportData<'_> {
    /// Writes an object: `version`, `lost_samples`, `events` with their totals, `branch_types` if there are any, and `rows`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{{\"version\":{VERSION},\"lost_samples\":{},",
            self.lost
        )?;
        out.write_all(b"\"events\":")?;
        self.totals().write_json(out)?;
        let types: Vec<(&str, u64)> = self.branches.list().collect();
        if !types.is_empty() {
            let mut counts = Table::new(
                types
                    .iter()
                    .map(|(name, _)| Column::right(*name))
                    .collect::<Vec<_>>(),
            );
            counts.push(
                types
                    .iter()
                    .map(|(_, count)| Cell::from(*count))
                    .collect::<Vec<_>>(),
            );
            out.write_all(b",\n\"branch_types\":")?;
            counts.write_json(out)?;
        }
        out.write_all(b",\n\"rows\":")?;
        self.rows().write_json(out)?;
        out.write_all(b"}\n")
    }

    /// Writes titles and rows as CSV.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        self.rows().write_csv(out)
    }

    /// The total of each event, which percentages refer to.
    fn totals(&self) -> Table {
        let titles = ["event", "samples", "period"];
        let mut totals = Table::new(titles.map(Column::left));
        for table in self.tables {
            for (event, whole) in table.events.iter().zip(&table.totals) {
                let cells = [
                    self.event_cell(*event),
                    whole.samples.into(),
                    whole.period.into(),
                ];
                totals.push(cells);
            }
        }
        totals
    }

    /// The rows in the order of the text report; a row of a group of events is repeated for each event.
    fn rows(&self) -> Table {
        let fields = self.tables.first().map_or(&[][..], |table| &table.columns);
        let names = fields.iter().map(|field| match field {
            ReportField::Number(number) => number.name(),
            ReportField::Key(key) => key.name,
        });
        let constant_names = self
            .constant_columns
            .iter()
            .map(|(name, _)| (*name).to_owned());
        let columns = std::iter::once("event").chain(names).map(Column::left);
        let columns: Vec<Column> = columns.chain(constant_names.map(Column::left)).collect();
        let mut rows = Table::new(columns);
        for table in self.tables {
            // In a group of events, the first one decides whether a row is shown.
            let whole = table.totals.first().copied().unwrap_or_default().period;
            let is_shown = |row: &&HistogramRow| {
                !Percent::of(row.weights.total, whole).below(self.min_percent)
            };
            for row in table.rows.iter().filter(is_shown) {
                for index in 0..table.events.len() {
                    rows.push(self.row(table, row, index));
                }
            }
        }
        rows
    }

    /// The cells of a row for one of its events: `index` is that of the event in `table.events`.
    fn row(&self, table: &Histogram, row: &HistogramRow, index: usize) -> Vec<Cell> {
        // `row.cells` has the texts of the keys only.
        let mut keys = row.cells.iter();
        let event = table.events.get(index).copied().unwrap_or(usize::MAX);
        let mut cells = vec![self.event_cell(event)];
        cells.extend(table.columns.iter().map(|field| {
            match field {
                ReportField::Number(number) => number_cell(table, row, *number, index),
                ReportField::Key(_) => keys
                    .next()
                    .map_or_else(Cell::missing, |cell| cell.trim().into()),
            }
        }));
        cells.extend(
            self.constant_columns
                .iter()
                .map(|(_, value)| Cell::from(*value)),
        );
        cells
    }

    fn event_cell(&self, event: usize) -> Cell {
        self.events
            .get(event)
            .map_or_else(Cell::missing, |name| Cell::from(*name))
    }
}

/// A number of a row for one of its events: `index` is that of the event in `table.events`.
fn number_cell(table: &Histogram, row: &HistogramRow, number: NumberField, index: usize) -> Cell {
    let value = |number| row.numbers(number).nth(index).unwrap_or_default();
    if number.is_share() {
        let whole = table.totals.get(index).copied().unwrap_or_default();
        return Cell::share(value(number), number.total(&whole));
    }
    match number.is_average() {
        true => Cell::number(value(number) as f64 / value(NumberField::Samples).max(1) as f64),
        false => value(number).into(),
    }
}
