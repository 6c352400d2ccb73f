//! `diff --runs`: mean shares of two groups of runs, and the confidence intervals of their differences.

use std::io::{self, Write};

use rperf_hist::{ComparedRuns, Comparison, RunComparison};
use serde_json::{Value, json};

use super::json::row_keys;
use super::{DIFF_JSON_VERSION, DiffLayout, escaped_name, key_widths, separated_keys, write_keys};
use crate::padding::{LeftAligned, RightAligned};
use crate::percent::Percent;
use crate::table::write_separated_titles;
use crate::terminal::Sgr;

/// Titles and widths of the columns of numbers.
const NUMBERS: &[(&str, usize)] = &[("Baseline", 8), ("New", 8), ("Delta", 8), ("95% CI", 8)];

/// Title of the column that marks significant rows.
const MARK: &str = "Sig";

/// One event's table.
#[derive(Debug, Clone, Copy)]
pub struct RunsEvent<'a> {
    /// The event's name.
    pub name: &'a str,
    /// The rows of all runs, with their keys, before the runs are compared as two groups: used for the keys and totals.
    pub comparison: &'a Comparison,
    /// The comparison of the two groups of runs; each of its rows contains a row of `comparison` (hence `row.row`).
    pub runs: &'a RunComparison,
    /// Whether rows without a significant difference are shown, too.
    pub shows_all: bool,
}

impl<'a> RunsEvent<'a> {
    fn rows(&self) -> impl Iterator<Item = &'a ComparedRuns> {
        let shows_all = self.shows_all;
        let rows = self.runs.rows.iter();
        rows.filter(move |row| shows_all || row.is_significant())
    }

    /// The number of rows that are not shown.
    fn hidden(&self) -> usize {
        self.runs.rows.len() - self.rows().count()
    }
}

/// Writes one event's table; the first one has no blank line above.
///
/// # Errors
/// Those of `out`.
pub fn write_runs(
    out: &mut dyn Write,
    event: &RunsEvent<'_>,
    layout: &DiffLayout,
    is_first: bool,
) -> io::Result<()> {
    let rows: Vec<&ComparedRuns> = event.rows().collect();
    // The comparison without the hidden rows, for the widths of the keys.
    let shown = Comparison {
        rows: rows.iter().map(|row| row.row.clone()).collect(),
        ..event.comparison.clone()
    };
    let widths = key_widths(&shown, layout.escapes);
    if !layout.quiet {
        let blank = if is_first { "" } else { "\n" };
        // The number of runs in each group. The other group (`other` in rows) is called "new" in the output.
        let [baseline_runs, new_runs] = event.runs.runs;
        let name = escaped_name(event.name, layout);
        writeln!(out, "{blank}# Event '{name}'\n#")?;
        writeln!(
            out,
            "# Mean shares of {baseline_runs} and {new_runs} runs; 95% confidence interval of the difference (Welch's t)\n#"
        )?;
        write_titles(out, event, &widths, layout)?;
    }
    for row in rows {
        match &layout.separator {
            Some(separator) => write_separated(out, event, row, separator)?,
            None => {
                write_numbers(out, event, row, layout)?;
                write_keys(out, &shown, &row.row, &widths, layout.escapes)?;
            }
        }
    }
    match event.hidden() {
        0 => Ok(()),
        _ if layout.quiet || layout.separator.is_some() => Ok(()),
        hidden => writeln!(
            out,
            "#\n# Rows that are not shown because their difference is not significant: {hidden} (--all shows them)"
        ),
    }
}

/// Writes a row without padding; within keys, the separator is replaced by a dot.
fn write_separated(
    out: &mut dyn Write,
    event: &RunsEvent<'_>,
    row: &ComparedRuns,
    separator: &str,
) -> io::Result<()> {
    let mark = event.shows_all.then(|| mark(row).to_owned());
    let keys = separated_keys(&row.row, separator);
    let cells: Vec<String> = numbers(row).into_iter().chain(mark).chain(keys).collect();
    writeln!(out, "{}", cells.join(separator))
}

/// Writes the numbers of a row, and its mark if rows without a significant difference are shown, too.
fn write_numbers(
    out: &mut dyn Write,
    event: &RunsEvent<'_>,
    row: &ComparedRuns,
    layout: &DiffLayout,
) -> io::Result<()> {
    // The magnitude of a number decides its colour; small ones have none. 0 gives the confidence interval no colour, whatever
    // its width.
    let uncoloured = 0.0;
    let magnitudes = [row.baseline, row.other, row.difference(), uncoloured];
    for ((number, (_, width)), magnitude) in numbers(row).iter().zip(NUMBERS).zip(magnitudes) {
        let (begin, end) = match row.is_significant() {
            true => Percent::magnitude(magnitude).paint(layout.colors),
            false => (Sgr::NONE, Sgr::NONE),
        };
        write!(out, "  {begin}{}{end}", RightAligned(number, *width))?;
    }
    match event.shows_all {
        true => write!(out, "  {}", LeftAligned(mark(row), MARK.len())),
        false => Ok(()),
    }
}

/// Returns `*` for a significant row, otherwise an empty text.
fn mark(row: &ComparedRuns) -> &'static str {
    match row.is_significant() {
        true => "*",
        false => "",
    }
}

fn numbers(row: &ComparedRuns) -> [String; 4] {
    [
        format!("{:.2}%", row.baseline),
        format!("{:.2}%", row.other),
        format!("{:+.2}%", row.difference()),
        format!("+-{:.2}%", row.margin),
    ]
}

fn write_titles(
    out: &mut dyn Write,
    event: &RunsEvent<'_>,
    widths: &[usize],
    layout: &DiffLayout,
) -> io::Result<()> {
    let mark = event.shows_all.then_some(MARK);
    let keys = &event.comparison.keys;
    if let Some(separator) = &layout.separator {
        let titles = NUMBERS.iter().map(|(title, _)| *title).chain(mark);
        let titles: Vec<&str> = titles.chain(keys.iter().map(|key| key.title)).collect();
        return write_separated_titles(out, &titles, separator);
    }
    let numbers = NUMBERS.iter();
    let numbers = numbers.map(|(title, width)| RightAligned(title, *width).to_string());
    let padded = keys.iter().zip(widths);
    let padded = padded.map(|(key, width)| LeftAligned(key.title, *width).to_string());
    let titles = numbers.chain(mark.map(str::to_owned)).chain(padded);
    let titles: Vec<String> = titles.collect();
    let rules = titles.iter().map(|title| ".".repeat(title.chars().count()));
    let rules: Vec<String> = rules.collect();
    writeln!(out, "# {}\n# {}\n#", titles.join("  "), rules.join("  "))
}

/// Writes the comparisons of all events as one JSON document and a newline. `groups` has the file names of the baseline's runs
/// and of the other group's.
///
/// # Errors
/// Those of `out`.
pub fn write_runs_json(
    out: &mut dyn Write,
    groups: [&[String]; 2],
    events: &[RunsEvent<'_>],
) -> io::Result<()> {
    let [baseline, other] = groups;
    let document = json!({
        "version": DIFF_JSON_VERSION,
        "baseline": baseline,
        "new": other,
        "confidence": 0.95,
        "events": events.iter().map(table).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// Returns one event's table as JSON.
fn table(event: &RunsEvent<'_>) -> Value {
    let object = |row: &ComparedRuns| {
        json!({
            "keys": row_keys(event.comparison, &row.row),
            "baseline": row.baseline,
            "new": row.other,
            "delta": row.difference(),
            "margin": row.margin,
            "significant": row.is_significant(),
            "periods": row.row.periods,
        })
    };
    json!({
        "event": event.name,
        "totals": event.comparison.totals,
        "hidden": event.hidden(),
        "rows": event.rows().map(object).collect::<Vec<_>>(),
    })
}
