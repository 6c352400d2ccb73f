//! `diff`: the rows of several recordings next to each other; the tables have the layout of perf 6.1.

mod cells;
mod counts;
mod json;
mod runs;
mod streams;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write};

use rperf_hist::{BlockLine, CellPadding, ComparedRow, Comparison, ComparisonMethod};

use self::cells::DiffCell;
pub use self::counts::{ComparedCount, CountObservation, CountsView, EventValues, compare_counts};
pub use self::json::{DIFF_JSON_VERSION, write_json};
pub use self::runs::{RunsEvent, write_runs, write_runs_json};
pub use self::streams::{StreamsEvent, write_streams, write_streams_json};
use crate::padding::{LeftAligned, RightAligned};
use crate::table::write_separated_titles;
use crate::terminal::{Csi, Sgr, escaped_line};

/// The layout of the tables.
#[derive(Debug, Clone, Default)]
pub struct DiffLayout {
    /// `-F`: a column with the calculation of each value.
    pub formula: bool,
    /// `--cycles-hist`: a column that compares the cycles of each basic block with those in the baseline. The first executions
    /// (at most 8) are compared one by one, which gives an absolute difference for each. The column shows the relative standard
    /// error of these differences, and a bar for each.
    pub cycles_histogram: bool,
    /// `-p`: columns with the periods.
    pub periods: bool,
    /// `-q`: rows only.
    pub quiet: bool,
    /// Whether the files are listed above each table.
    pub lists_files: bool,
    /// `-t`: the separator of cells, which are then not padded.
    pub separator: Option<String>,
    /// The colour sequences of values; `None` without colours.
    pub colors: Option<Csi>,
    /// Whether control characters in names and keys are escaped before they are padded. Set for output to a terminal: the filter
    /// of all such output escapes them anyway, but after padding, so that columns would be misaligned.
    pub escapes: bool,
}

/// One event's table.
#[derive(Debug, Clone, Copy)]
pub struct DiffEvent<'a> {
    /// Its name.
    pub name: &'a str,
    /// The names of the files, the baseline first.
    pub files: &'a [String],
    /// The rows.
    pub comparison: &'a Comparison,
    /// With [`ComparisonMethod::Cycles`], the basic blocks of each row's function: each block has a line, and these replace the
    /// line of the row.
    pub blocks: Option<&'a [Vec<BlockLine>]>,
}

/// A column of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberColumn {
    Baseline,
    BaselinePeriod,
    Value,
    CyclesHistogram,
    Formula,
    Period,
}

/// A number column of one file.
struct DiffColumn {
    kind: NumberColumn,
    /// Index of the file; 0 is the baseline.
    file: usize,
    title: String,
    width: usize,
}

/// Writes one event's table, with a blank line above unless it is the first table.
///
/// # Errors
/// Those of `out`.
pub fn write_diff(
    out: &mut dyn Write,
    event: &DiffEvent<'_>,
    layout: &DiffLayout,
    is_first: bool,
) -> io::Result<()> {
    let columns = columns(event.comparison, layout);
    let widths = key_widths(event.comparison, layout.escapes);
    if !layout.quiet {
        let blank_line = if is_first { "" } else { "\n" };
        let name = escaped_name(event.name, layout);
        writeln!(out, "{blank_line}# Event '{name}'\n#")?;
        if layout.lists_files {
            write_files(out, event.files, layout)?;
        }
        write_titles(out, event.comparison, &columns, &widths, layout)?;
    }
    for (number, row) in event.comparison.rows.iter().enumerate() {
        let cells = |block_line| {
            let numbers = columns.iter();
            let numbers = numbers.map(|column| column.cell(event.comparison, row, block_line));
            numbers.collect::<Vec<DiffCell>>()
        };
        let lines: Vec<Vec<DiffCell>> = match event.blocks {
            None => {
                let no_block_line = None;
                vec![cells(no_block_line)]
            }
            Some(blocks) => {
                let block_lines = blocks.get(number).into_iter().flatten();
                block_lines.map(|line| cells(Some(line))).collect()
            }
        };
        for numbers in &lines {
            match &layout.separator {
                Some(separator) => write_separated(out, row, numbers, separator)?,
                None => {
                    write_numbers(out, numbers, &columns, layout.colors)?;
                    write_keys(out, event.comparison, row, &widths, layout.escapes)?;
                }
            }
        }
    }
    Ok(())
}

/// The number columns, file by file.
fn columns(comparison: &Comparison, layout: &DiffLayout) -> Vec<DiffColumn> {
    // Each file has a total.
    let files = comparison.totals.len();
    let column = |file: usize, kind: NumberColumn| {
        let (name, width) = kind.heading(comparison.method);
        // With two files, only one is compared with the baseline, and needs no number.
        let title = match files > 2 {
            true => format!("{name}/{file}"),
            false => name.to_owned(),
        };
        DiffColumn {
            kind,
            file,
            width: title.len().max(width),
            title,
        }
    };
    let kinds_of_file = |file: usize| {
        let (main, period) = match file {
            0 => (NumberColumn::Baseline, NumberColumn::BaselinePeriod),
            _ => (NumberColumn::Value, NumberColumn::Period),
        };
        let histogram = layout.cycles_histogram && file > 0;
        let histogram = histogram.then_some(NumberColumn::CyclesHistogram);
        let formula = layout.formula && file > 0;
        let formula = formula.then_some(NumberColumn::Formula);
        let period = layout.periods.then_some(period);
        let kinds = [Some(main), histogram, formula, period];
        kinds.into_iter().flatten().map(move |kind| (file, kind))
    };
    let all = (0..files).flat_map(kinds_of_file);
    all.map(|(file, kind)| column(file, kind)).collect()
}

impl NumberColumn {
    /// Title and minimum width.
    fn heading(self, method: ComparisonMethod) -> (&'static str, usize) {
        match (self, method) {
            (Self::Baseline, _) => ("Baseline", 8),
            (Self::BaselinePeriod, _) => ("Base period", 14),
            (Self::Formula, _) => ("Formula", 70),
            (Self::Period, _) => ("Period", 14),
            (Self::CyclesHistogram, _) => ("stddev/Hist", 17),
            (Self::Value, ComparisonMethod::Cycles) => ("[Program Block Range] Cycles Diff", 70),
            (Self::Value, ComparisonMethod::Delta) => ("Delta", 7),
            (Self::Value, ComparisonMethod::AbsoluteDelta) => ("Delta Abs", 7),
            (Self::Value, ComparisonMethod::Ratio) => ("Ratio", 14),
            (Self::Value, ComparisonMethod::WeightedDifference { .. }) => ("Weighted diff", 14),
        }
    }
}

/// Writes the list of files.
fn write_files(out: &mut dyn Write, files: &[String], layout: &DiffLayout) -> io::Result<()> {
    writeln!(out, "# Data files:")?;
    for (number, file) in files.iter().enumerate() {
        let note = if number == 0 { "(Baseline)" } else { "" };
        writeln!(out, "#  [{number}] {} {note}", escaped_name(file, layout))?;
    }
    writeln!(out, "#")
}

/// Writes the titles, padded to the column widths, and a rule of dots; with a separator, titles only. `key_widths` are the widths
/// of the key columns, which follow the number columns.
fn write_titles(
    out: &mut dyn Write,
    comparison: &Comparison,
    columns: &[DiffColumn],
    key_widths: &[usize],
    layout: &DiffLayout,
) -> io::Result<()> {
    let number_titles = columns.iter().map(|column| &*column.title);
    if let Some(separator) = &layout.separator {
        let keys = comparison.keys.iter().map(|key| key.title);
        let titles: Vec<&str> = number_titles.chain(keys).collect();
        return write_separated_titles(out, &titles, separator);
    }
    let numbers = columns
        .iter()
        .map(|column| RightAligned(&column.title, column.width).to_string());
    let keys = comparison.keys.iter().zip(key_widths);
    let keys = keys.map(|(key, width)| LeftAligned(key.title, *width).to_string());
    let titles: Vec<String> = numbers.chain(keys).collect();
    let number_widths = columns.iter().map(|column| column.width);
    let rules = number_widths
        .chain(key_widths.iter().copied())
        .map(|width| ".".repeat(width));
    let rules: Vec<String> = rules.collect();
    writeln!(out, "# {}\n# {}\n#", titles.join("  "), rules.join("  "))
}

/// Writes the number cells of a row, coloured by their magnitude.
fn write_numbers(
    out: &mut dyn Write,
    numbers: &[DiffCell],
    columns: &[DiffColumn],
    colors: Option<Csi>,
) -> io::Result<()> {
    for (cell, column) in numbers.iter().zip(columns) {
        let (begin, end) = match cell.magnitude {
            Some(magnitude) => magnitude.paint(colors),
            None => (Sgr::NONE, Sgr::NONE),
        };
        let text = RightAligned(&cell.text, column.width);
        write!(out, "  {begin}{text}{end}")?;
    }
    Ok(())
}

/// Writes the key cells of a row and ends the line.
fn write_keys(
    out: &mut dyn Write,
    comparison: &Comparison,
    row: &ComparedRow,
    widths: &[usize],
    escapes: bool,
) -> io::Result<()> {
    let last = comparison.keys.len().saturating_sub(1);
    let cells = comparison.keys.iter().zip(&row.cells).zip(widths);
    for (index, ((key, cell), width)) in cells.enumerate() {
        let cell = escaped(cell, escapes);
        match key.pads {
            CellPadding::Before => write!(out, "  {}", RightAligned(&cell, *width))?,
            CellPadding::UnlessLast if index == last => write!(out, "  {cell}")?,
            // `Always`, and `UnlessLast` in other columns.
            _ => write!(out, "  {}", LeftAligned(&cell, *width))?,
        }
    }
    writeln!(out)
}

/// Writes a row without padding; within keys, the separator is replaced by a dot. Control characters are left to the filter of
/// terminal output, which misaligns nothing here.
fn write_separated(
    out: &mut dyn Write,
    row: &ComparedRow,
    numbers: &[DiffCell],
    separator: &str,
) -> io::Result<()> {
    let numbers = numbers.iter().map(|cell| cell.bare().to_owned());
    let cells: Vec<String> = numbers.chain(separated_keys(row, separator)).collect();
    writeln!(out, "{}", cells.join(separator))
}

/// The key cells of a row without padding; the separator is replaced by a dot.
fn separated_keys(row: &ComparedRow, separator: &str) -> impl Iterator<Item = String> {
    let cells = row.cells.iter();
    cells.map(move |cell| cell.trim().replace(separator, "."))
}

/// The width of each key's column: the maximum of its title, its longest cell and, if any row has no symbol, perf's
/// minimum for tables with such rows.
fn key_widths(comparison: &Comparison, escapes: bool) -> Vec<usize> {
    let unresolved = comparison.rows.iter().any(|row| row.unresolved);
    let keys = comparison.keys.iter().enumerate();
    keys.map(|(index, key)| {
        let cells = comparison
            .rows
            .iter()
            .filter_map(|row| row.cells.get(index));
        let longest = cells
            .map(|cell| escaped(cell, escapes).chars().count())
            .max();
        let least = if unresolved { key.unresolved_width } else { 0 };
        let title = key.title.chars().count();
        longest.unwrap_or_default().max(least).max(title)
    })
    .collect()
}

fn escaped_name<'t>(text: &'t str, layout: &DiffLayout) -> Cow<'t, str> {
    escaped(text, layout.escapes)
}

fn escaped(text: &str, escapes: bool) -> Cow<'_, str> {
    match escapes {
        true => escaped_line(text),
        false => text.into(),
    }
}
