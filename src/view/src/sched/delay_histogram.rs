//! The waits for a CPU as a histogram, for `sched latency --histogram`.

use std::io::{self, Write};

use rperf_analysis::LogHistogram;
use rperf_analysis::sched::latency::{LatencyRow, LatencySums, LatencyTable};
use rperf_names::counted;

use super::MICROSECOND;
use super::delays::{comm_cell, milliseconds, thread_cell};
use crate::table::{Cell, Column, Table, TextStyle};

/// The length of the longest bar, in characters.
const BAR: u64 = 40;
/// The exponent of the end of the first line, which counts all waits shorter than 2^10 ns (1.024 us).
const FIRST_POWER: u32 = 10;

/// Writes a histogram of the waits of all tasks, and one for each row if there are several rows. A histogram has a line for the
/// waits below 1.024 us, and one for each power of two nanoseconds from there on; lines before that of the shortest wait are
/// omitted. The distributions must have been kept (`LatencyOptions::with_distributions`).
///
/// # Errors
///
/// Those of `out`.
pub fn write_histograms(out: &mut dyn Write, table: &LatencyTable) -> io::Result<()> {
    write_histogram(out, "all tasks", &table.sums())?;
    if let [_, _, ..] = &table.rows[..] {
        for row in &table.rows {
            writeln!(out)?;
            write_histogram(out, &title(row), &row.sums)?;
        }
    }
    Ok(())
}

fn title(row: &LatencyRow) -> String {
    let comm = String::from_utf8_lossy(&row.comm);
    match row.tasks {
        1 => format!("{comm}:{}", row.tid),
        tasks => format!("{comm}:({tasks})"),
    }
}

fn write_histogram(out: &mut dyn Write, title: &str, sums: &LatencySums) -> io::Result<()> {
    // Each wait ends with a switch to the task: the number of switches is that of waits.
    let waits = sums.switches;
    let (mean, max) = (milliseconds(sums.average()), milliseconds(sums.max_delay));
    writeln!(
        out,
        "# {title}: {}, mean {mean} ms, maximum {max} ms",
        counted(waits, "wait")
    )?;
    let counts = counts_by_power(&sums.delays, FIRST_POWER);
    write_counts(out, &counts, FIRST_POWER, waits)
}

/// Writes a line with a bar for each of `counts`, from the first one above 0 on. The first of `counts` is the number of waits
/// shorter than two to the power of `first_power` nanoseconds, each further one the number in the next power of two; `waits` is
/// the number of all waits.
///
/// # Errors
///
/// Those of `out`.
pub(crate) fn write_counts(
    out: &mut dyn Write,
    counts: &[u64],
    first_power: u32,
    waits: u64,
) -> io::Result<()> {
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut rows = Table::new([
        Column::right("From us"),
        Column::right("To us"),
        Column::right("Waits"),
        Column::right("Share"),
        Column::left(""),
    ]);
    // If no count is above 0, this is `None`, which is less than `Some` of any line: all lines are written.
    let first = counts.iter().position(|count| *count > 0);
    let mut from = 0;
    for (line, (power, count)) in (first_power..).zip(counts).enumerate() {
        let to = 1_u64.checked_shl(power).unwrap_or(u64::MAX);
        if Some(line) >= first {
            rows.push([
                microseconds(from).into(),
                microseconds(to).into(),
                (*count).into(),
                Cell::share(*count, waits),
                bar(*count, most).into(),
            ]);
        }
        from = to;
    }
    rows.write_text(out, TextStyle::PLAIN)
}

/// Returns the number of values below two to the power of `first_power`, and the number in each power of two from there on, up to
/// the highest value.
pub(crate) fn counts_by_power(values: &LogHistogram, first_power: u32) -> Vec<u64> {
    let mut counts = Vec::new();
    for bucket in values.buckets() {
        // No bucket crosses a power of two, so its start determines its line.
        let end_power = bucket.from.checked_ilog2().map_or(0, |power| power + 1);
        let line = end_power.saturating_sub(first_power) as usize;
        if counts.len() <= line {
            counts.resize(line + 1, 0);
        }
        if let Some(count) = counts.get_mut(line) {
            *count += bucket.count;
        }
    }
    counts
}

/// Returns the bar of a line; `most` is the highest count of all lines.
pub(crate) fn bar(count: u64, most: u64) -> String {
    let length = count.saturating_mul(BAR).div_ceil(most.max(1));
    "#".repeat(usize::try_from(length).unwrap_or_default())
}

fn microseconds(nanos: u64) -> String {
    format!("{}.{:03}", nanos / MICROSECOND, nanos % MICROSECOND)
}

/// Returns the buckets of each row of `table` (a task, or merged tasks of one name), for JSON: waits from `from_ns` to `to_ns`,
/// exclusive.
pub(super) fn buckets(table: &LatencyTable) -> Table {
    let mut rows = Table::new(["comm", "tid", "from_ns", "to_ns", "waits"].map(Column::left));
    for row in &table.rows {
        for bucket in row.sums.delays.buckets() {
            rows.push([
                comm_cell(row),
                thread_cell(row),
                bucket.from.into(),
                bucket.to.into(),
                bucket.count.into(),
            ]);
        }
    }
    rows
}
