//! The distribution of each task's waits for a CPU, as a table of percentiles and as JSON, for `sched latency`.

use std::io::{self, Write};

use rperf_analysis::sched::latency::{LatencyRow, LatencySums, LatencyTable};

use super::antagonists::pairs;
use super::delay_histogram::buckets;
use crate::table::{Cell, Column, Table, TextStyle};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const LATENCY_JSON_VERSION: u32 = 1;

/// Nanoseconds per millisecond.
const MILLISECOND: f64 = 1e6;

/// A column of times.
struct TimeColumn {
    /// The title in the table, where times are in milliseconds.
    title: &'static str,
    /// The key in JSON, where times are in nanoseconds.
    key: &'static str,
    /// Returns the time in nanoseconds; `None` for a statistic of waits if there are none.
    value: fn(&LatencySums) -> Option<u64>,
}

/// The columns after the number of waits. The argument of `percentile` is in thousandths.
const TIMES: [TimeColumn; 7] = [
    TimeColumn {
        title: "Runtime ms",
        key: "runtime_ns",
        value: |sums| Some(sums.runtime),
    },
    TimeColumn {
        title: "Mean delay ms",
        key: "mean_delay_ns",
        // Each wait ends with a switch.
        value: |sums| (sums.switches > 0).then(|| sums.average()),
    },
    TimeColumn {
        title: "p50 ms",
        key: "p50_delay_ns",
        value: |sums| sums.delays.percentile(500),
    },
    TimeColumn {
        title: "p90 ms",
        key: "p90_delay_ns",
        value: |sums| sums.delays.percentile(900),
    },
    TimeColumn {
        title: "p99 ms",
        key: "p99_delay_ns",
        value: |sums| sums.delays.percentile(990),
    },
    TimeColumn {
        title: "p99.9 ms",
        key: "p99.9_delay_ns",
        value: |sums| sums.delays.percentile(999),
    },
    TimeColumn {
        title: "Max ms",
        key: "max_delay_ns",
        value: |sums| sums.delays.max(),
    },
];

/// Writes a table with a row per task: run time, number of waits, and their mean, percentiles and maximum in milliseconds.
/// The distributions must have been kept (`LatencyOptions::with_distributions`).
///
/// # Errors
///
/// Those of `out`.
pub fn write_percentiles(out: &mut dyn Write, table: &LatencyTable) -> io::Result<()> {
    let titles = ["Task", "Thread", "Tasks", "Waits"];
    rows(table, titles, |column| column.title).write_text(out, TextStyle::PLAIN)
}

/// Members of the JSON object of `sched latency` besides the rows of tasks.
#[derive(Debug, Clone, Copy, Default)]
pub struct LatencyJson {
    /// The number of records lost while recording; with `--live`, of waits that are not in the table.
    pub lost_records: u64,
    /// Whether the object has the buckets of the histograms.
    pub with_buckets: bool,
    /// Whether the object has the antagonists: the tasks that ran while others waited (`LatencyOptions::with_antagonists`).
    pub with_antagonists: bool,
}

/// Writes an object with a row per task, and the members that `json` selects; times are in nanoseconds.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(out: &mut dyn Write, table: &LatencyTable, json: LatencyJson) -> io::Result<()> {
    let lost = json.lost_records;
    write!(
        out,
        "{{\"version\":{LATENCY_JSON_VERSION},\"lost_records\":{lost},\"rows\":"
    )?;
    let keys = ["comm", "tid", "tasks", "waits"];
    rows(table, keys, |column| column.key).write_json(out)?;
    if json.with_buckets {
        out.write_all(b",\"buckets\":")?;
        buckets(table).write_json(out)?;
    }
    if json.with_antagonists {
        out.write_all(b",\"antagonists\":")?;
        pairs(table).write_json(out)?;
    }
    writeln!(out, "}}")
}

fn rows(
    table: &LatencyTable,
    first_titles: [&'static str; 4],
    title: fn(&TimeColumn) -> &'static str,
) -> Table {
    let [comm_title, number_titles @ ..] = first_titles;
    let number_titles = number_titles.into_iter().chain(TIMES.iter().map(title));
    let numbers = number_titles.map(Column::right);
    let columns = std::iter::once(Column::left(comm_title)).chain(numbers);
    let mut rows = Table::new(columns.collect::<Vec<_>>());
    for row in &table.rows {
        rows.push(cells(row));
    }
    rows
}

fn cells(row: &LatencyRow) -> Vec<Cell> {
    let mut cells = vec![
        comm_cell(row),
        thread_cell(row),
        row.tasks.into(),
        // The waits, each of which ended with a switch.
        row.sums.switches.into(),
    ];
    cells.extend(TIMES.iter().map(|column| match (column.value)(&row.sums) {
        Some(time) => Cell::count(time, milliseconds(time)),
        None => Cell::missing(),
    }));
    cells
}

/// The name of a row's task.
pub(super) fn comm_cell(row: &LatencyRow) -> Cell {
    String::from_utf8_lossy(&row.comm).into_owned().into()
}

/// The thread of a row; missing if the row sums up several tasks, or if the id is negative.
pub(super) fn thread_cell(row: &LatencyRow) -> Cell {
    match (row.tasks, u64::try_from(row.tid)) {
        (1, Ok(tid)) => tid.into(),
        _ => Cell::missing(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "three decimals are shown")]
pub(super) fn milliseconds(time: u64) -> String {
    format!("{:.3}", time as f64 / MILLISECOND)
}
