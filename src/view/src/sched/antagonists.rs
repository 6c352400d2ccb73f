//! The tasks that ran while others waited for a CPU, for `sched latency --antagonists`.

use std::io::{self, Write};

use rperf_analysis::sched::latency::{Antagonist, AntagonistTime, LatencyRow, LatencyTable};

use super::delays::{comm_cell, milliseconds, thread_cell};
use crate::table::{Cell, Column, Table, TextStyle};

/// The number of antagonists of a task that are listed as text. The others are summed up.
const MAX_LISTED: usize = 10;

/// Writes a table of the tasks that ran while others waited for a CPU, in total, and a table by waiting task, with times in
/// milliseconds. The analysis must have run with `LatencyOptions::with_antagonists`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_antagonists(out: &mut dyn Write, table: &LatencyTable) -> io::Result<()> {
    totals(table).write_text(out, TextStyle::PLAIN)?;
    writeln!(out)?;
    let mut rows = Table::new([
        Column::left("Task"),
        Column::right("Thread"),
        Column::right("Waits"),
        Column::right("Delay ms"),
        Column::left("Ran meanwhile"),
        Column::right("Runs"),
        Column::right("Time ms"),
        Column::right("Share"),
    ]);
    for row in &table.rows {
        push_task(&mut rows, row);
    }
    rows.write_text(out, TextStyle::PLAIN)
}

/// The antagonists of all waiting tasks together.
fn totals(table: &LatencyTable) -> Table {
    let mut rows = Table::new([
        Column::left("Ran while others waited"),
        Column::right("Tasks delayed"),
        Column::right("Runs"),
        Column::right("Time ms"),
        Column::right("Share"),
    ]);
    let sums = table.sums();
    for (who, time) in sums.antagonists.by_time() {
        rows.push([
            antagonist_text(who).into(),
            time.delayed_tasks.into(),
            time.runs.into(),
            time_cell(time.nanos),
            Cell::share(time.nanos, sums.delay),
        ]);
    }
    rows
}

/// Adds the rows of a task: one for each listed antagonist and one for the others; a single row if there are no antagonists. Only
/// the first row names the task.
fn push_task(rows: &mut Table, row: &LatencyRow) {
    let antagonists = row.sums.antagonists.by_time();
    let listed = antagonists.iter().take(MAX_LISTED);
    let listed = listed.map(|(who, time)| (antagonist_text(who), *time));
    let mut entries: Vec<(String, AntagonistTime)> = listed.collect();
    let others = antagonists.get(MAX_LISTED..).unwrap_or_default();
    if !others.is_empty() {
        let mut sum = AntagonistTime::default();
        others.iter().for_each(|(_, time)| sum += *time);
        entries.push((format!("<{} others>", others.len()), sum));
    }
    let mut cells = vec![
        comm_cell(row),
        thread_cell(row),
        // The waits that ended with a switch.
        row.sums.switches.into(),
        time_cell(row.sums.delay),
    ];
    if entries.is_empty() {
        rows.push(cells);
        return;
    }
    for (name, time) in entries {
        cells.extend([
            name.into(),
            time.runs.into(),
            time_cell(time.nanos),
            Cell::share(time.nanos, row.sums.delay),
        ]);
        let next = vec![Cell::missing(); 4];
        rows.push(std::mem::replace(&mut cells, next));
    }
}

/// Returns a row for each pair of a waiting task and an antagonist, for JSON. Times are in nanoseconds; `kind` is that of the
/// antagonist: `task`, `idle` or `unknown`.
pub(super) fn pairs(table: &LatencyTable) -> Table {
    let mut rows = Table::new(
        [
            "comm",
            "tid",
            "kind",
            "antagonist",
            "antagonist_tid",
            "runs",
            "time_ns",
        ]
        .map(Column::left),
    );
    for row in &table.rows {
        for (who, time) in row.sums.antagonists.by_time() {
            let (kind, name, tid) = match who {
                Antagonist::Task { comm, tid } => {
                    let name = String::from_utf8_lossy(comm).into_owned().into();
                    ("task", name, *tid)
                }
                Antagonist::Idle => ("idle", Cell::missing(), None),
                Antagonist::Unknown => ("unknown", Cell::missing(), None),
            };
            let tid = tid.and_then(|tid| u64::try_from(tid).ok());
            rows.push([
                comm_cell(row),
                thread_cell(row),
                kind.into(),
                name,
                tid.map_or(Cell::missing(), Cell::from),
                time.runs.into(),
                time.nanos.into(),
            ]);
        }
    }
    rows
}

fn antagonist_text(who: &Antagonist) -> String {
    match who {
        Antagonist::Task { comm, tid } => {
            let comm = String::from_utf8_lossy(comm);
            match tid {
                Some(tid) => format!("{comm}:{tid}"),
                None => comm.into_owned(),
            }
        }
        Antagonist::Idle => "<idle>".to_owned(),
        Antagonist::Unknown => "<unknown>".to_owned(),
    }
}

fn time_cell(nanos: u64) -> Cell {
    Cell::count(nanos, milliseconds(nanos))
}
