//! `report --hierarchy`: one sort key per level, as a tree.

use std::io::{self, Write};

use rperf_hist::{CellPadding, HierarchyLine, Histogram};

use super::graph;
use super::table::{ColumnKind, ReportLayout, TableColumn, push_number_cell, push_numbers, shown};
use crate::padding::Blanks;
use crate::percent::Percent;
use crate::table::Align;

/// Indentation per level.
const INDENT: usize = 3;

/// The columns: numbers side by side, keys nested.
struct HierarchyColumns {
    numbers: Vec<TableColumn>,
    keys: Vec<TableColumn>,
}

impl HierarchyColumns {
    fn new(histogram: &Histogram, layout: &ReportLayout) -> Self {
        let columns = TableColumn::list(histogram, layout).into_iter();
        let (numbers, keys) =
            columns.partition(|column| matches!(column.kind, ColumnKind::Number(_)));
        Self { numbers, keys }
    }

    /// The indentation of the deepest level.
    fn indent(&self) -> usize {
        self.keys.len().saturating_sub(1) * INDENT
    }
}

/// Writes titles and rule; only titles if the layout has a separator.
pub(super) fn write_titles(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &ReportLayout,
) -> io::Result<()> {
    let columns = HierarchyColumns::new(histogram, layout);
    let padded: Vec<String> = columns
        .numbers
        .iter()
        .map(TableColumn::padded_title)
        .collect();
    let keys: Vec<&str> = columns.keys.iter().map(|column| column.title).collect();
    let keys = keys.join(" / ");
    if let Some(separator) = &layout.separator {
        let numbers: Vec<&str> = columns.numbers.iter().map(|column| column.title).collect();
        return writeln!(out, "# {}{separator}{keys}", numbers.join(separator));
    }
    let indent = columns.indent();
    let number_titles = padded.join("  ");
    writeln!(out, "# {}{number_titles}  {keys}", Blanks(indent))?;
    let levels = columns.keys.iter().enumerate();
    let widest = levels
        .map(|(level, column)| level * INDENT + column.width)
        .max();
    let widest = widest.unwrap_or_default().max(keys.chars().count());
    let numbers_width = indent + number_titles.chars().count();
    let rules = [numbers_width, widest].map(|width| ".".repeat(width));
    writeln!(out, "# {}\n#", rules.join("  "))
}

/// Writes the rows, with call graphs below those of the last level.
pub(super) fn write_rows(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &ReportLayout,
) -> io::Result<()> {
    let columns = HierarchyColumns::new(histogram, layout);
    let total = histogram.totals.first().copied().unwrap_or_default().period;
    // The level of a hidden row while the rows of its subtree, which are hidden as well, are skipped.
    let mut hidden_level = None;
    let mut text = String::new();
    // A step is a line of the tree: a row with the one cell of its level's key.
    for step in histogram.hierarchy() {
        if hidden_level.is_some_and(|level| step.level > level) {
            continue;
        }
        // A hierarchy does not include callees, so `own` is also the total of the row.
        let is_hidden = Percent::of(step.row.weights.own, total).below(layout.min_percent);
        hidden_level = is_hidden.then_some(step.level);
        if is_hidden {
            continue;
        }
        text.clear();
        match &layout.separator {
            Some(separator) => write_separated(&mut text, &step, histogram, separator, &columns),
            None => write_padded(&mut text, &step, histogram, &columns),
        }
        text.push('\n');
        // Only rows of the last level have a call graph. As in perf, its percentages relate to all samples, including those
        // without a row.
        graph::push(&mut text, &step.row, histogram.all.period, layout);
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn write_padded(
    line: &mut String,
    step: &HierarchyLine,
    histogram: &Histogram,
    columns: &HierarchyColumns,
) {
    line.extend(std::iter::repeat_n(' ', step.level * INDENT));
    for column in &columns.numbers {
        line.push_str("  ");
        push_number_cell(line, &step.row, histogram, column);
    }
    line.extend(std::iter::repeat_n(' ', columns.indent() + 2));
    let cell = step.row.cells.first().map_or("", String::as_str);
    let column = columns.keys.get(step.level);
    let (width, align) = match column.map(|column| (&column.kind, column.width)) {
        Some((
            ColumnKind::Key {
                pads: CellPadding::Always,
                ..
            },
            width,
        )) => (width, Align::Left),
        Some((
            ColumnKind::Key {
                pads: CellPadding::Before,
                ..
            },
            width,
        )) => (width, Align::Right),
        // `CellPadding::UnlessLast`: the key is the last cell of its line.
        _ => (0, Align::Left),
    };
    let escapes = column.is_some_and(|column| column.escapes);
    align.push(line, &shown(cell, escapes), width);
}

fn write_separated(
    line: &mut String,
    step: &HierarchyLine,
    histogram: &Histogram,
    separator: &str,
    columns: &HierarchyColumns,
) {
    for column in &columns.numbers {
        if let ColumnKind::Number(number) = column.kind {
            push_numbers(line, &step.row, number, &histogram.totals);
            line.push_str(separator);
        }
    }
    let cell = step.row.cells.first().map_or("", |cell| cell.trim());
    match separator {
        "" => line.push_str(cell),
        _ => line.push_str(&cell.replace(separator, ".")),
    }
}
