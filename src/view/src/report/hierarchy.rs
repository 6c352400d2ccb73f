//! `report --hierarchy`: one sort key to a level, each line below what it is a part of.

use std::io::{self, Write};

use rperf_hist::{Histogram, Pads, Step};

use super::graph;
use super::table::{Column, Kind, Layout, Side, numbers, pad, shown, write_number};
use crate::padding::Blanks;
use crate::percent::Percent;

/// Blanks for each level.
const INDENT: usize = 3;

/// The columns: numbers side by side, keys below each other.
struct Columns {
    numbers: Vec<Column>,
    keys: Vec<Column>,
}

impl Columns {
    fn new(histogram: &Histogram, layout: &Layout) -> Self {
        let columns = Column::list(histogram, layout).into_iter();
        let (numbers, keys) = columns.partition(|column| matches!(column.kind, Kind::Number(_)));
        Self { numbers, keys }
    }

    /// What the deepest level is indented by.
    fn indent(&self) -> usize {
        self.keys.len().saturating_sub(1) * INDENT
    }
}

/// Writes titles and rule.
pub(super) fn write_titles(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &Layout,
) -> io::Result<()> {
    let columns = Columns::new(histogram, layout);
    let numbers: Vec<String> = columns.numbers.iter().map(Column::title).collect();
    let keys: Vec<&str> = columns.keys.iter().map(|column| column.title).collect();
    let keys = keys.join(" / ");
    if let Some(separator) = &layout.separator {
        let numbers: Vec<&str> = columns.numbers.iter().map(|column| column.title).collect();
        return writeln!(out, "# {}{separator}{keys}", numbers.join(separator));
    }
    let indent = columns.indent();
    let numbers = numbers.join("  ");
    writeln!(out, "# {}{numbers}  {keys}", Blanks(indent))?;
    let cells = columns.keys.iter().enumerate();
    let widest = cells
        .map(|(level, column)| level * INDENT + column.width)
        .max();
    let widest = widest.unwrap_or_default().max(keys.chars().count());
    let numbers = indent + numbers.chars().count();
    writeln!(out, "# {}  {}\n#", ".".repeat(numbers), ".".repeat(widest))
}

/// Writes the lines, with call graphs below those of the last level.
pub(super) fn write_rows(
    out: &mut dyn Write,
    histogram: &Histogram,
    layout: &Layout,
) -> io::Result<()> {
    let columns = Columns::new(histogram, layout);
    let whole = histogram.wholes.first().copied().unwrap_or_default().period;
    // What is left out takes its parts with it.
    let mut hidden = None;
    let mut line = String::new();
    for step in histogram.hierarchy() {
        if hidden.is_some_and(|level| step.level > level) {
            continue;
        }
        let below = Percent::of(step.row.weights.own, whole).below(layout.min_percent);
        hidden = below.then_some(step.level);
        if below {
            continue;
        }
        line.clear();
        match &layout.separator {
            Some(separator) => write_separated(&mut line, &step, histogram, separator, &columns),
            None => write_padded(&mut line, &step, histogram, &columns),
        }
        line.push('\n');
        out.write_all(line.as_bytes())?;
        graph::write(out, &step.row, histogram.all.period, layout)?;
    }
    Ok(())
}

fn write_padded(line: &mut String, step: &Step, histogram: &Histogram, columns: &Columns) {
    line.extend(std::iter::repeat_n(' ', step.level * INDENT));
    for column in &columns.numbers {
        line.push_str("  ");
        write_number(line, &step.row, histogram, column);
    }
    line.extend(std::iter::repeat_n(' ', columns.indent() + 2));
    let cell = step.row.cells.first().map_or("", String::as_str);
    let column = columns.keys.get(step.level);
    let (width, side) = match column.map(|column| (&column.kind, column.width)) {
        Some((
            Kind::Key {
                pads: Pads::Always, ..
            },
            width,
        )) => (width, Side::Left),
        Some((
            Kind::Key {
                pads: Pads::Before, ..
            },
            width,
        )) => (width, Side::Right),
        _ => (0, Side::Left),
    };
    let escapes = column.is_some_and(|column| column.escapes);
    pad(line, width, &shown(cell, escapes), side);
}

fn write_separated(
    line: &mut String,
    step: &Step,
    histogram: &Histogram,
    separator: &str,
    columns: &Columns,
) {
    for column in &columns.numbers {
        if let Kind::Number(number) = column.kind {
            let texts: Vec<String> = numbers(&step.row, number, &histogram.wholes)
                .map(|(text, _)| text)
                .collect();
            line.push_str(&texts.join(" "));
            line.push_str(separator);
        }
    }
    let cell = step.row.cells.first().map_or("", |cell| cell.trim());
    match separator {
        "" => line.push_str(cell),
        _ => line.push_str(&cell.replace(separator, ".")),
    }
}
