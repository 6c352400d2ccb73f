//! Delays or run times of each piece of work as JSON.

use std::io::{self, Write};

use rperf_analysis::kwork::{KworkClass, KworkRow, KworkTable};

use crate::table::{Cell, Column, Table};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const KWORK_JSON_VERSION: u32 = 1;

const KEYS: [&str; 15] = [
    "class",
    "name",
    "id",
    "cpu",
    "count",
    "total_ns",
    "mean_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99.9_ns",
    "max_ns",
    "max_start_ns",
    "max_end_ns",
    "doubtful",
];

/// Writes an object with a row per piece of work; times are in nanoseconds. `measure` is `runtime` or `delay`. `lost` is the
/// number of records lost while recording.
///
/// # Errors
///
/// Those of `out`.
pub fn write(out: &mut dyn Write, table: &KworkTable, measure: &str, lost: u64) -> io::Result<()> {
    let skipped = table.skipped;
    write!(
        out,
        "{{\"version\":{KWORK_JSON_VERSION},\"measure\":\"{measure}\",\"lost_records\":{lost},\"time_span_ns\":{},\
        \"skipped\":{{\"raise\":{},\"entry\":{},\"exit\":{}}},\"rows\":",
        table.measured_time, skipped.raise, skipped.entry, skipped.exit
    )?;
    // JSON ignores the alignment.
    let columns: Vec<Column> = KEYS.map(Column::left).into();
    let mut rows = Table::new(columns);
    for row in &table.rows {
        rows.push(cells(row));
    }
    rows.write_json(out)?;
    writeln!(out, "}}")
}

fn cells(row: &KworkRow) -> Vec<Cell> {
    let KworkRow { work, times } = row;
    // A string for all classes: the id of a workqueue's work is an address, and most readers of JSON keep numbers in a double,
    // which holds only 53 bits.
    let id = match work.class {
        KworkClass::Workqueue => format!("{:#x}", work.id),
        _ => work.id.to_string(),
    };
    let mut cells: Vec<Cell> = vec![
        work.class.name().to_owned().into(),
        String::from_utf8_lossy(&work.name).into_owned().into(),
        id.into(),
        u64::from(work.cpu).into(),
        times.count.into(),
        times.total.into(),
        times.average().into(),
    ];
    let percentiles =
        [500, 900, 990, 999].map(|per_mille| times.distribution.percentile(per_mille));
    cells.extend(percentiles.map(|time| time.map_or_else(Cell::missing, Cell::from)));
    let rest = [times.max, times.max_start, times.max_end, times.doubtful];
    cells.extend(rest.map(Cell::from));
    cells
}
