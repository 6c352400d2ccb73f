//! The table: titles, a dotted rule, rows.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use rperf_hist::{
    CellPadding, ColumnSum, GraphForm, Histogram, HistogramRow, NumberField, ReportField, parallel,
};

use super::graph::{self, GraphValue};
use super::hierarchy;
use crate::digits;
use crate::percent::Percent;
use crate::table::{self, Align, TextStyle, TextTable};
use crate::terminal::{Csi, Sgr, escaped_line};

/// The number of rows that a thread formats at a time.
const ROWS_OF_A_BLOCK: usize = 32;
/// Blocks per thread that are formatted before the first of them is written. This bounds the memory that their text takes.
const BLOCKS_OF_A_THREAD: usize = 16;

/// The layout of a report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportLayout {
    /// Rows below this percentage of the total are hidden.
    pub min_percent: f64,
    /// Whether the columns of [`NumberField::Own`] and [`NumberField::Latency`] are titled `Self` and `Self Latency`, because the
    /// columns of their totals are next to them.
    pub titles_own_as_self: bool,
    /// `-w`: the widths of the first columns, in characters; 0 for an automatic width.
    pub widths: Vec<usize>,
    /// `-t`: the separator of cells, which are then not padded, and of the frames of a folded
    /// chain.
    pub separator: Option<String>,
    /// The format of the call graphs.
    pub graph_form: GraphForm,
    /// The numbers on the branches of call graphs.
    pub graph_value: GraphValue,
    /// Maximum number of children of a call-graph node, of lines of a stem (the frames before the first fork), or of chains in a
    /// list; no limit if `None`.
    pub graph_limit: Option<NonZeroUsize>,
    /// Whether rows form a tree with one sort key per level.
    pub hierarchy: bool,
    /// The colour sequences of percentages; `None` without colours.
    pub colors: Option<Csi>,
    /// Whether the control characters in cells are escaped before column widths are determined. If not, output to a terminal is
    /// escaped only after the widths are determined, so the columns may be misaligned.
    pub escapes: bool,
    /// Whether the stem of a call graph starts with its second frame: perf treats the first as the
    /// row's own symbol if `--sort` starts with the symbol.
    pub skips_first_frame: bool,
    /// The number of threads that format rows; one if not given.
    pub threads: Option<NonZeroUsize>,
}

impl ReportLayout {
    /// [`Self::graph_limit`] as a number.
    pub(super) fn most_branches(&self) -> usize {
        self.graph_limit.map_or(usize::MAX, NonZeroUsize::get)
    }
}

/// A column while printing.
pub(super) struct TableColumn {
    pub(super) kind: ColumnKind,
    pub(super) title: &'static str,
    /// The width of a cell, or of one number of a cell, in characters.
    pub(super) width: usize,
    /// The width of the column, in characters. A column of numbers has one number per event of a group.
    title_width: usize,
    /// The colour sequences of percentages.
    colors: Option<Csi>,
    /// Whether control characters in cells are escaped.
    pub(super) escapes: bool,
}

pub(super) enum ColumnKind {
    Number(NumberField),
    /// A sort key: longer cells are truncated if a width was given, shorter ones padded according
    /// to the key.
    Key {
        truncates: bool,
        pads: CellPadding,
    },
}

impl TableColumn {
    pub(super) fn list(histogram: &Histogram, layout: &ReportLayout) -> Vec<Self> {
        let mut key_widths = widths(histogram, layout.escapes).into_iter();
        let given = layout.widths.iter().copied();
        let given = given.map(|width| Some(width).filter(|width| *width > 0));
        let given = given.chain(std::iter::repeat(None));
        let columns = histogram.columns.iter().zip(given);
        columns
            .map(|(field, given)| match field {
                ReportField::Number(number) => Self::number(*number, given, histogram, layout),
                ReportField::Key(key) => {
                    let width = key_widths.next().unwrap_or_default();
                    Self {
                        kind: ColumnKind::Key {
                            truncates: given.is_some(),
                            pads: key.pads,
                        },
                        title: key.title,
                        width: given.unwrap_or(width),
                        title_width: given.unwrap_or(width),
                        colors: None,
                        escapes: layout.escapes,
                    }
                }
            })
            .collect()
    }

    fn number(
        number: NumberField,
        given: Option<usize>,
        histogram: &Histogram,
        layout: &ReportLayout,
    ) -> Self {
        let title = match number {
            NumberField::Own if layout.titles_own_as_self => "Self",
            NumberField::Own => "Overhead",
            NumberField::Kernel => "sys",
            NumberField::User => "usr",
            NumberField::GuestKernel => "guest sys",
            NumberField::GuestUser => "guest usr",
            NumberField::Total => "Children",
            NumberField::Samples => "Samples",
            NumberField::Period => "Period",
            NumberField::Latency if layout.titles_own_as_self => "Self Latency",
            NumberField::Latency | NumberField::TotalLatency => "Latency",
            NumberField::FirstCost => "Weight1",
            NumberField::SecondCost => "Weight2",
            NumberField::ThirdCost => "Weight3",
        };
        let usual = match number {
            NumberField::GuestKernel | NumberField::GuestUser => 9,
            NumberField::Samples | NumberField::Period => 12,
            _ => 8,
        };
        let width = given.unwrap_or(usual);
        Self {
            kind: ColumnKind::Number(number),
            title,
            width,
            // As in perf, only the usual width is multiplied by the number of events, not a given one.
            title_width: width.max(usual * histogram.events.len()).max(title.len()),
            colors: layout.colors,
            escapes: layout.escapes,
        }
    }

    /// Returns the column of a [`TextTable`] that writes this column's title.
    fn head(&self) -> table::Column {
        let width = self.title_width;
        match self.kind {
            ColumnKind::Number(_) => table::Column::right(self.title).fixed(width),
            ColumnKind::Key { .. } => {
                let title: String = self.title.chars().take(width).collect();
                table::Column::left(title).fixed(width)
            }
        }
    }

    pub(super) fn padded_title(&self) -> String {
        let head = self.head();
        head.align.fill(&head.title, self.title_width).to_string()
    }
}

/// Writes titles and rule; only titles if the layout has a separator.
pub fn write_titles(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &ReportLayout,
) -> io::Result<()> {
    if layout.hierarchy {
        return hierarchy::write_titles(out, histogram, layout);
    }
    let columns = TableColumn::list(histogram, layout);
    if let Some(separator) = &layout.separator {
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        return table::write_separated_titles(out, &titles, separator);
    }
    let heads: Vec<table::Column> = columns.iter().map(TableColumn::head).collect();
    let style = TextStyle {
        rule: true,
        ..TextStyle::PLAIN
    };
    TextTable::new(&heads, style).write_titles(out)
}

/// Writes the rows with their call graphs.
pub fn write_rows(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &ReportLayout,
) -> io::Result<()> {
    if layout.hierarchy {
        return hierarchy::write_rows(out, histogram, layout);
    }
    let columns = TableColumn::list(histogram, layout);
    let total = histogram.totals.first().copied().unwrap_or_default().period;
    let is_shown =
        |row: &&HistogramRow| !Percent::of(row.weights.total, total).below(layout.min_percent);
    let rows: Vec<&HistogramRow> = histogram.rows.iter().filter(is_shown).collect();
    let blocks: Vec<&[&HistogramRow]> = rows.chunks(ROWS_OF_A_BLOCK).collect();
    let threads = layout.threads.unwrap_or(NonZeroUsize::MIN);
    for blocks in blocks.chunks(BLOCKS_OF_A_THREAD * threads.get()) {
        let format = |rows| format_rows(rows, histogram, layout, &columns);
        for text in parallel::map(blocks.to_vec(), threads, format) {
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

/// Formats rows with their call graphs.
fn format_rows(
    rows: &[&HistogramRow],
    histogram: &Histogram,
    layout: &ReportLayout,
    columns: &[TableColumn],
) -> String {
    let mut text = String::new();
    for row in rows {
        match &layout.separator {
            Some(separator) => write_separated(&mut text, row, histogram, separator),
            None => write_padded(&mut text, row, histogram, columns),
        }
        text.push('\n');
        // As in perf, call-graph percentages relate to `all`, with the samples that have no row, even if `totals` excludes them.
        graph::push(&mut text, row, histogram.all.period, layout);
    }
    text
}

fn write_padded(
    line: &mut String,
    row: &HistogramRow,
    histogram: &Histogram,
    columns: &[TableColumn],
) {
    let mut cells = row.cells.iter();
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.iter().enumerate() {
        line.push_str("  ");
        match column.kind {
            ColumnKind::Number(_) => push_number_cell(line, row, histogram, column),
            ColumnKind::Key { .. } => {
                let cell = cells.next().map(String::as_str).unwrap_or_default();
                push_key_cell(line, cell, column, index == last);
            }
        }
    }
}

/// Appends the cell of a key. The last cell of a row has no trailing blanks if its key has [`CellPadding::UnlessLast`].
pub(super) fn push_key_cell(line: &mut String, cell: &str, column: &TableColumn, is_last: bool) {
    let ColumnKind::Key { truncates, pads } = column.kind else {
        return;
    };
    let cell = shown(cell, column.escapes);
    let end = cell.char_indices().nth(column.width).filter(|_| truncates);
    let cell = end.map_or(&*cell, |(end, _)| &cell[..end]);
    let width = match pads {
        CellPadding::UnlessLast if is_last => 0,
        _ => column.width,
    };
    let align = match pads {
        CellPadding::Before => Align::Right,
        _ => Align::Left,
    };
    align.push(line, cell, width);
}

/// Appends the cell of a number, with one text per event.
pub(super) fn push_number_cell(
    line: &mut String,
    row: &HistogramRow,
    histogram: &Histogram,
    column: &TableColumn,
) {
    let ColumnKind::Number(number) = column.kind else {
        return;
    };
    let mut filled = 0;
    for value in numbers(row, number, &histogram.totals) {
        let colors = value.share().map(|share| share.paint(column.colors));
        let (begin, end) = colors.unwrap_or((Sgr::NONE, Sgr::NONE));
        begin.push_to(line);
        filled += push_number(line, value, column);
        end.push_to(line);
    }
    digits::push_blanks(line, column.title_width.saturating_sub(filled));
}

/// The numbers of a column as separate texts, each with its value if it is a percentage; then a text of blanks if the numbers do
/// not fill the column.
pub(super) fn number_cells(
    row: &HistogramRow,
    totals: &[ColumnSum],
    column: &TableColumn,
) -> Vec<(String, Option<Percent>)> {
    let ColumnKind::Number(number) = column.kind else {
        return Vec::new();
    };
    let mut filled = 0;
    let padded = numbers(row, number, totals).map(|value| {
        let mut cell = String::new();
        filled += push_number(&mut cell, value, column);
        (cell, value.share())
    });
    let mut cells: Vec<_> = padded.collect();
    // `push_number` aligns each number within `width`. If `title_width` is larger, the remaining blanks follow the numbers.
    let blanks = column.title_width.saturating_sub(filled);
    if blanks > 0 {
        cells.push((" ".repeat(blanks), None));
    }
    cells
}

/// Appends a blank and a number, right-aligned in the rest of [`TableColumn::width`]. Returns how many bytes it appended: as all
/// are ASCII, this is also the number of characters.
fn push_number(line: &mut String, value: Number, column: &TableColumn) -> usize {
    let begin = line.len();
    line.push(' ');
    value.push_to(line);
    digits::align_right(line, begin + 1, column.width.saturating_sub(1));
    line.len() - begin
}

/// Appends the cells of a row without padding; separators within keys are replaced by dots.
fn write_separated(line: &mut String, row: &HistogramRow, histogram: &Histogram, separator: &str) {
    let mut cells = row.cells.iter();
    for (index, field) in histogram.columns.iter().enumerate() {
        if index > 0 {
            line.push_str(separator);
        }
        match field {
            ReportField::Number(number) => {
                push_numbers(line, row, *number, &histogram.totals);
            }
            ReportField::Key(_) => {
                let cell = cells.next().map(|cell| cell.trim()).unwrap_or_default();
                let cell = match separator {
                    "" => Cow::Borrowed(cell),
                    _ => Cow::Owned(cell.replace(separator, ".")),
                };
                line.push_str(&cell);
            }
        }
    }
}

/// A number of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Share(Percent),
    Average(f64),
    Count(u64),
}

impl Number {
    /// Appends its text.
    pub(super) fn push_to(self, out: &mut String) {
        match self {
            Self::Share(share) => share.push_to(out),
            // Writing to a String cannot fail.
            Self::Average(average) => drop(write!(out, "{average:.1}")),
            Self::Count(count) => digits::push_decimal(out, count),
        }
    }

    fn share(self) -> Option<Percent> {
        match self {
            Self::Share(share) => Some(share),
            _ => None,
        }
    }
}

/// The row's value of the column `number` for each event.
pub(super) fn numbers<'a>(
    row: &'a HistogramRow,
    number: NumberField,
    totals: &'a [ColumnSum],
) -> impl Iterator<Item = Number> + 'a {
    let samples = row.numbers(NumberField::Samples);
    let values = row.numbers(number).zip(samples).zip(totals);
    values.map(move |((value, samples), total)| match number {
        _ if number.is_share() => Number::Share(Percent::of(value, number.total(total))),
        _ if number.is_average() => Number::Average(value as f64 / samples.max(1) as f64),
        _ => Number::Count(value),
    })
}

/// Appends the numbers of one column of a row, separated by blanks, without padding.
pub(super) fn push_numbers(
    line: &mut String,
    row: &HistogramRow,
    number: NumberField,
    totals: &[ColumnSum],
) {
    for (index, value) in numbers(row, number, totals).enumerate() {
        if index > 0 {
            line.push(' ');
        }
        value.push_to(line);
    }
}

/// A cell as printed.
pub(super) fn shown(cell: &str, escapes: bool) -> Cow<'_, str> {
    match escapes {
        true => escaped_line(cell),
        false => cell.into(),
    }
}

/// The width of each key's column: the maximum of its title, its longest cell and, if any row has no
/// symbol, perf's minimum for such rows.
fn widths(histogram: &Histogram, escapes: bool) -> Vec<usize> {
    let unresolved = histogram.rows.iter().any(|row| row.unresolved);
    let keys = histogram.columns.iter().filter_map(|field| field.key());
    let keys = keys.enumerate();
    keys.map(|(index, key)| {
        let cells = histogram.rows.iter().filter_map(|row| row.cells.get(index));
        let longest = cells.map(|cell| shown(cell, escapes).chars().count()).max();
        let least = if unresolved { key.unresolved_width } else { 0 };
        let title = key.title.chars().count();
        longest.unwrap_or_default().max(least).max(title)
    })
    .collect()
}
