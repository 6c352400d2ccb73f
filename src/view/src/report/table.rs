//! The table: titles, a dotted rule, rows.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use rperf_hist::{GraphForm, Histogram, Row};

use super::graph::{self, BranchValue};
use super::percent::Percent;

/// What is shown of a report, and how.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// `-n`: the number of samples, in a column before those of the keys.
    pub samples: bool,
    /// Rows below this share of all events are left out, in percent.
    pub min_percent: f64,
    /// The form of the call graphs.
    pub graph_form: GraphForm,
    /// What their branches are marked with.
    pub graph_value: BranchValue,
    /// Most branches of one fork in a call graph, most lines of its stem, or most chains of a list.
    pub graph_limit: Option<NonZeroUsize>,
    /// `-t`: what stands between cells, which then are not padded, and between the frames of a folded chain.
    pub separator: Option<String>,
    /// Whether the stem of a call graph begins with its second frame: perf takes the first for the row's own symbol
    /// where `--sort` begins with that.
    pub skip_symbol: bool,
}

impl Layout {
    pub(super) fn most_branches(&self) -> usize {
        self.graph_limit.map_or(usize::MAX, NonZeroUsize::get)
    }
}

/// A column before those of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Total(&'static str),
    Own(&'static str),
    Samples,
}

impl Number {
    fn list(histogram: &Histogram, layout: &Layout) -> Vec<Self> {
        let mut numbers = if histogram.children {
            vec![Self::Total("Children"), Self::Own("Self")]
        } else {
            vec![Self::Own("Overhead")]
        };
        if layout.samples {
            numbers.push(Self::Samples);
        }
        numbers
    }

    fn title(self) -> &'static str {
        match self {
            Self::Total(title) | Self::Own(title) => title,
            Self::Samples => "Samples",
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Total(_) | Self::Own(_) => 8,
            Self::Samples => 12,
        }
    }

    fn text(self, row: &Row, whole: u64) -> String {
        match self {
            Self::Total(_) => Percent::of(row.total, whole).to_string(),
            Self::Own(_) => Percent::of(row.own, whole).to_string(),
            Self::Samples => row.samples.to_string(),
        }
    }
}

/// Writes titles and rule. Both are as wide as the columns, blanks at the end included.
pub fn write_titles(out: &mut dyn Write, histogram: &Histogram, layout: &Layout) -> io::Result<()> {
    let numbers = Number::list(histogram, layout);
    let titles = numbers
        .iter()
        .map(|number| format!("{:>1$}", number.title(), number.width()));
    let keys = histogram.keys.iter().zip(widths(histogram));
    let titles: Vec<String> = titles
        .chain(keys.map(|(key, width)| format!("{:<width$}", key.title)))
        .collect();
    writeln!(out, "# {}", titles.join("  "))?;
    let rules: Vec<String> = titles
        .iter()
        .map(|title| ".".repeat(title.chars().count()))
        .collect();
    writeln!(out, "# {}\n#", rules.join("  "))
}

/// Writes the rows with their call graphs.
pub fn write_rows(out: &mut dyn Write, histogram: &Histogram, layout: &Layout) -> io::Result<()> {
    let numbers = Number::list(histogram, layout);
    let widths = widths(histogram);
    let mut line = String::new();
    for row in &histogram.rows {
        if Percent::of(row.total, histogram.period).below(layout.min_percent) {
            continue;
        }
        line.clear();
        for number in &numbers {
            line.push_str("  ");
            pad(
                &mut line,
                number.width(),
                &number.text(row, histogram.period),
                Side::Right,
            );
        }
        let last = histogram.keys.len().saturating_sub(1);
        for (index, (cell, width)) in row.cells.iter().zip(&widths).enumerate() {
            let padded = index != last || histogram.keys[index].pads;
            line.push_str("  ");
            pad(&mut line, if padded { *width } else { 0 }, cell, Side::Left);
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        graph::write(out, row, histogram.period, layout)?;
    }
    Ok(())
}

/// Where a text stands in its column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn pad(line: &mut String, width: usize, text: &str, side: Side) {
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

/// The width of each key's column: that of its title, of its longest cell and, as soon as one row is not resolved, of
/// what perf keeps free for such rows.
fn widths(histogram: &Histogram) -> Vec<usize> {
    let unresolved = histogram.rows.iter().any(|row| row.unresolved);
    let keys = histogram.keys.iter().enumerate();
    keys.map(|(index, key)| {
        let cells = histogram.rows.iter().filter_map(|row| row.cells.get(index));
        let longest = cells.map(|cell| cell.chars().count()).max();
        let least = if unresolved { key.unresolved_width } else { 0 };
        let title = key.title.chars().count();
        longest.unwrap_or_default().max(least).max(title)
    })
    .collect()
}
