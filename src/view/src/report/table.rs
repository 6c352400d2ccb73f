//! The table: titles, a dotted rule, rows.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::NonZeroUsize;

use rperf_hist::{Field, GraphForm, Histogram, Number, Pads, Row, Sum};

use super::graph::{self, BranchValue};
use super::hierarchy;
use crate::padding::{LeftAligned, RightAligned};
use crate::percent::Percent;
use crate::terminal::{Csi, Sgr, escaped_line};

/// How a report is laid out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// Rows below this share of all events are left out, in percent.
    pub min_percent: f64,
    /// Whether the column of [`Number::Own`] is called `Self`, as beside that of [`Number::Total`].
    pub own_is_self: bool,
    /// `-w`: the widths of the first columns, in characters; 0 leaves one as wide as it needs.
    pub widths: Vec<usize>,
    /// `-t`: what stands between cells, which then are not padded, and between the frames of a folded chain.
    pub separator: Option<String>,
    /// The form of the call graphs.
    pub graph_form: GraphForm,
    /// What their branches are marked with.
    pub graph_value: BranchValue,
    /// Most branches of one fork in a call graph, most lines of its stem, or most chains of a list.
    pub graph_limit: Option<NonZeroUsize>,
    /// Whether each sort key is a level of its own.
    pub hierarchy: bool,
    /// What the colours of shares begin with; none without colours.
    pub colors: Option<Csi>,
    /// Whether control characters in cells are escaped, as a terminal shows them: so that columns are as wide as there.
    pub escapes: bool,
    /// Whether the stem of a call graph begins with its second frame: perf takes the first for the row's own symbol
    /// where `--sort` begins with that.
    pub skip_symbol: bool,
}

impl Layout {
    pub(super) fn most_branches(&self) -> usize {
        self.graph_limit.map_or(usize::MAX, NonZeroUsize::get)
    }
}

/// A column as it is printed.
pub(super) struct Column {
    pub(super) kind: Kind,
    pub(super) title: &'static str,
    /// What cells are filled up to: from the left if they are numbers, else from the right.
    pub(super) width: usize,
    /// What the title is filled up to.
    title_width: usize,
    /// What the colours of shares begin with.
    colors: Option<Csi>,
    /// Whether control characters in cells are escaped.
    pub(super) escapes: bool,
}

pub(super) enum Kind {
    Number(Number),
    /// A sort key: longer cells are cut if its width was given, shorter ones padded as it says.
    Key {
        cuts: bool,
        pads: Pads,
    },
}

impl Column {
    pub(super) fn list(histogram: &Histogram, layout: &Layout) -> Vec<Self> {
        let mut needed = widths(histogram, layout.escapes).into_iter();
        let given = layout.widths.iter().copied();
        let given = given.map(|width| Some(width).filter(|width| *width > 0));
        let given = given.chain(std::iter::repeat(None));
        let columns = histogram.columns.iter().zip(given);
        columns
            .map(|(field, given)| match field {
                Field::Number(number) => Self::number(*number, given, histogram, layout),
                Field::Key(key) => {
                    let width = needed.next().unwrap_or_default();
                    Self {
                        kind: Kind::Key {
                            cuts: given.is_some(),
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
        number: Number,
        given: Option<usize>,
        histogram: &Histogram,
        layout: &Layout,
    ) -> Self {
        let title = match number {
            Number::Own if layout.own_is_self => "Self",
            Number::Own => "Overhead",
            Number::Kernel => "sys",
            Number::User => "usr",
            Number::GuestKernel => "guest sys",
            Number::GuestUser => "guest usr",
            Number::Total => "Children",
            Number::Samples => "Samples",
            Number::Period => "Period",
            Number::Latency if layout.own_is_self => "Self Latency",
            Number::Latency | Number::TotalLatency => "Latency",
            Number::FirstCost => "Weight1",
            Number::SecondCost => "Weight2",
            Number::ThirdCost => "Weight3",
        };
        let usual = match number {
            Number::GuestKernel | Number::GuestUser => 9,
            Number::Samples | Number::Period => 12,
            _ => 8,
        };
        let width = given.unwrap_or(usual);
        Self {
            kind: Kind::Number(number),
            title,
            width,
            title_width: width.max(usual * histogram.events.len()).max(title.len()),
            colors: layout.colors,
            escapes: layout.escapes,
        }
    }

    pub(super) fn title(&self) -> String {
        match self.kind {
            Kind::Number(_) => RightAligned(self.title, self.title_width).to_string(),
            Kind::Key { .. } => {
                let title: String = self.title.chars().take(self.title_width).collect();
                LeftAligned(&title, self.title_width).to_string()
            }
        }
    }
}

/// Writes titles and rule. Both are as wide as the columns, blanks at the end included.
pub fn write_titles(out: &mut dyn Write, histogram: &Histogram, layout: &Layout) -> io::Result<()> {
    if layout.hierarchy {
        return hierarchy::write_titles(out, histogram, layout);
    }
    let columns = Column::list(histogram, layout);
    if let Some(separator) = &layout.separator {
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        return writeln!(out, "# {}", titles.join(separator));
    }
    let titles: Vec<String> = columns.iter().map(Column::title).collect();
    writeln!(out, "# {}", titles.join("  "))?;
    let rules: Vec<String> = titles
        .iter()
        .map(|title| ".".repeat(title.chars().count()))
        .collect();
    writeln!(out, "# {}\n#", rules.join("  "))
}

/// Writes the rows with their call graphs.
pub fn write_rows(out: &mut dyn Write, histogram: &Histogram, layout: &Layout) -> io::Result<()> {
    if layout.hierarchy {
        return hierarchy::write_rows(out, histogram, layout);
    }
    let columns = Column::list(histogram, layout);
    let whole = histogram.wholes.first().copied().unwrap_or_default().period;
    let mut line = String::new();
    for row in &histogram.rows {
        if Percent::of(row.weights.total, whole).below(layout.min_percent) {
            continue;
        }
        line.clear();
        match &layout.separator {
            Some(separator) => write_separated(&mut line, row, histogram, separator),
            None => write_padded(&mut line, row, histogram, &columns),
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        graph::write(out, row, histogram.all.period, layout)?;
    }
    Ok(())
}

fn write_padded(line: &mut String, row: &Row, histogram: &Histogram, columns: &[Column]) {
    let mut cells = row.cells.iter();
    let last = columns.len().saturating_sub(1);
    for (index, column) in columns.iter().enumerate() {
        line.push_str("  ");
        match column.kind {
            Kind::Number(_) => write_number(line, row, histogram, column),
            Kind::Key { .. } => {
                let cell = cells.next().map(String::as_str).unwrap_or_default();
                key_cell(line, cell, column, index == last);
            }
        }
    }
}

/// The cell of a key. The last of a row needs no blanks behind it.
pub(super) fn key_cell(line: &mut String, cell: &str, column: &Column, is_last: bool) {
    let Kind::Key { cuts, pads } = column.kind else {
        return;
    };
    let cell = shown(cell, column.escapes);
    let end = cell.char_indices().nth(column.width).filter(|_| cuts);
    let cell = end.map_or(&*cell, |(end, _)| &cell[..end]);
    let width = match pads {
        Pads::Never if is_last => 0,
        _ => column.width,
    };
    let side = match pads {
        Pads::Before => Side::Right,
        _ => Side::Left,
    };
    pad(line, width, cell, side);
}

/// The cell of a number, one text for each event.
pub(super) fn write_number(line: &mut String, row: &Row, histogram: &Histogram, column: &Column) {
    for (text, share) in number_cells(row, &histogram.wholes, column) {
        let paint = |share: Percent| share.paint(column.colors);
        let (begin, end) = share.map_or((Sgr::NONE, Sgr::NONE), paint);
        let _ = write!(line, "{begin}{text}{end}");
    }
}

/// The same, the texts apart, each with the share that it is.
pub(super) fn number_cells(
    row: &Row,
    wholes: &[Sum],
    column: &Column,
) -> Vec<(String, Option<Percent>)> {
    let Kind::Number(number) = column.kind else {
        return Vec::new();
    };
    let mut filled = 0;
    let width = column.width.saturating_sub(1);
    let padded = numbers(row, number, wholes).map(|(text, share)| {
        let mut cell = " ".to_owned();
        pad(&mut cell, width, &text, Side::Right);
        filled += cell.len();
        (cell, share)
    });
    let mut cells: Vec<_> = padded.collect();
    // A narrow number in a wide column stands on the left.
    let blanks = column.title_width.saturating_sub(filled);
    if blanks > 0 {
        cells.push((" ".repeat(blanks), None));
    }
    cells
}

/// Cells without padding; what parts them does not occur in them.
fn write_separated(line: &mut String, row: &Row, histogram: &Histogram, separator: &str) {
    let mut cells = row.cells.iter();
    for (index, field) in histogram.columns.iter().enumerate() {
        if index > 0 {
            line.push_str(separator);
        }
        match field {
            Field::Number(number) => {
                for (index, (text, _)) in numbers(row, *number, &histogram.wholes).enumerate() {
                    let blank = if index > 0 { " " } else { "" };
                    let _ = write!(line, "{blank}{text}");
                }
            }
            Field::Key(_) => {
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

/// The texts of one number, one for each event, and what share it is.
pub(super) fn numbers<'a>(
    row: &'a Row,
    number: Number,
    wholes: &'a [Sum],
) -> impl Iterator<Item = (String, Option<Percent>)> + 'a {
    let samples = row.numbers(Number::Samples);
    let values = row.numbers(number).zip(samples).zip(wholes);
    values.map(move |((value, samples), whole)| {
        if number.is_share() {
            let share = Percent::of(value, number.whole(whole));
            return (share.to_string(), Some(share));
        }
        let text = match number.is_average() {
            true => format!("{:.1}", value as f64 / samples.max(1) as f64),
            false => value.to_string(),
        };
        (text, None)
    })
}

/// Where a text stands in its column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

pub(super) fn pad(line: &mut String, width: usize, text: &str, side: Side) {
    let blanks = width.saturating_sub(text.chars().count());
    let fill = std::iter::repeat_n(' ', blanks);
    if side == Side::Right {
        line.extend(fill);
        line.push_str(text);
    } else {
        line.push_str(text);
        line.extend(fill);
    }
}

/// A cell as it is shown.
pub(super) fn shown(cell: &str, escapes: bool) -> Cow<'_, str> {
    match escapes {
        true => escaped_line(cell),
        false => cell.into(),
    }
}

/// The width of each key's column: that of its title, of its longest cell and, as soon as one row is not resolved, of
/// what perf keeps free for such rows.
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
