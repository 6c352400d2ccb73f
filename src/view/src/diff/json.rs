//! `diff --json`.

use std::io::{self, Write};

use rperf_hist::{
    BlockLine, ComparedBlock, ComparedRow, ComparedValue, Comparison, ComparisonMethod,
};
use serde_json::{Map, Value, json};

use super::DiffEvent;

/// The version of the format, increased when a field changes its meaning.
pub const DIFF_JSON_VERSION: u32 = 1;

/// Writes the comparisons of all events as one JSON document and a newline.
///
/// # Errors
/// Those of `out`.
pub fn write_json(
    out: &mut dyn Write,
    files: &[String],
    events: &[DiffEvent<'_>],
) -> io::Result<()> {
    let method = events.first().map(|event| event.comparison.method);
    let document = json!({
        "version": DIFF_JSON_VERSION,
        "files": files,
        "compute": name(method.unwrap_or_default()),
        "events": events.iter().map(table).collect::<Vec<_>>(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// The comparison of one event. The blocks of its rows, if compared, are in the order of the rows.
fn table(event: &DiffEvent<'_>) -> Value {
    let rows = event.comparison.rows.iter().enumerate();
    let rows = rows.map(|(number, row)| {
        let mut row_json = row_object(event.comparison, row);
        if let Some(lines) = event.blocks {
            let lines = lines.get(number).into_iter().flatten();
            // An array of lines.
            row_json["blocks"] = lines.map(blocks).collect();
        }
        row_json
    });
    json!({
        "event": event.name,
        "totals": event.comparison.totals,
        "rows": rows.collect::<Vec<_>>(),
    })
}

/// A line of blocks, with an entry for each file but the baseline: start and end of its block (as source lines or
/// `FUNCTION+OFFSET`, and as offsets in the function), the average cycles, and the difference of these cycles from the
/// baseline's. The entry is null if the file does not have the function.
fn blocks(line: &BlockLine) -> Value {
    let block = |compared: &ComparedBlock| {
        json!({
            "range": compared.block.range,
            "offsets": compared.block.offsets,
            "cycles": compared.block.average(),
            "difference": compared.difference,
        })
    };
    let blocks = line.iter().map(|compared| compared.as_ref().map(block));
    blocks.collect::<Vec<_>>().into()
}

/// A row: its sort keys by name, and for each file the period, the share in percent and, except for the baseline, the computed
/// value. Each of these numbers is null if there is none.
fn row_object(comparison: &Comparison, row: &ComparedRow) -> Value {
    let files = 0..row.periods.len();
    let share = |file| match file {
        0 => comparison.baseline_share(row),
        _ => Some(comparison.share(file, row.period(file)?)),
    };
    let value = |file| match comparison.value(row, file)? {
        ComparedValue::Percent(value) | ComparedValue::Ratio(value) => Some(value),
        ComparedValue::Weighted(value) => Some(value as f64),
        ComparedValue::Undefined => None,
    };
    json!({
        "keys": row_keys(comparison, row),
        "periods": row.periods,
        "percent": files.clone().map(share).collect::<Vec<_>>(),
        "values": files.skip(1).map(value).collect::<Vec<_>>(),
    })
}

/// The cells of a row by the names of their sort keys.
pub(super) fn row_keys(comparison: &Comparison, row: &ComparedRow) -> Map<String, Value> {
    let keys = comparison.keys.iter().zip(&row.cells);
    keys.map(|(key, cell)| (key.name.to_owned(), cell.trim().into()))
        .collect()
}

fn name(method: ComparisonMethod) -> &'static str {
    match method {
        ComparisonMethod::Delta => "delta",
        ComparisonMethod::AbsoluteDelta => "delta-abs",
        ComparisonMethod::Ratio => "ratio",
        ComparisonMethod::WeightedDifference { .. } => "wdiff",
        ComparisonMethod::Cycles => "cycles",
    }
}
