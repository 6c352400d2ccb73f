//! Pairs rows of several histograms by the texts that identify them.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::ComparedRow;
use crate::histogram::{Histogram, HistogramRow};
use crate::keys::{FUNCTION_NAME, Key};

/// The texts that identify a row: cells of its sort keys, with the function's name instead of cells that show the function.
type RowNames = Vec<String>;

/// The sort keys of the rows, without [`FUNCTION_NAME`], which is the last key if functions are compared.
pub(super) fn keys(files: &[Option<&Histogram>]) -> Vec<&'static Key> {
    let first = files.iter().flatten().next();
    let columns = first.map_or(&[][..], |histogram| &histogram.columns);
    let keys = columns.iter().filter_map(|field| field.key());
    keys.filter(|key| **key != FUNCTION_NAME).collect()
}

/// The rows of all files, in order of their first appearance. Rows with the same names are one row, also those of one file, for
/// example those of a function at several addresses: their periods are added. A file is `None` if it does not have the event.
pub(super) fn pair_rows(files: &[Option<&Histogram>]) -> Vec<ComparedRow> {
    let mut rows: Vec<ComparedRow> = Vec::new();
    let mut indices: FxHashMap<RowNames, usize> = FxHashMap::default();
    let keys = keys(files);
    for (file, histogram) in files.iter().enumerate() {
        let Some(histogram) = histogram else {
            continue;
        };
        for row in &histogram.rows {
            let index = match indices.entry(names(row, &keys)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    rows.push(unpaired(row, &keys, files.len()));
                    *entry.insert(rows.len() - 1)
                }
            };
            let Some(paired) = rows.get_mut(index) else {
                continue;
            };
            // Whether no earlier file has the row: its cells are those of the first file that has it.
            let is_first_file = paired.periods.iter().take(file).all(Option::is_none);
            let cells = cells(row, &keys);
            if is_first_file && comes_first(cells, &paired.cells) {
                paired.cells = cells.to_vec();
            }
            if let Some(period) = paired.periods.get_mut(file) {
                let sum = period.unwrap_or_default();
                *period = Some(sum.saturating_add(row.weights.own));
            }
        }
    }
    rows
}

/// A row without periods; `files` is the number of files.
fn unpaired(row: &HistogramRow, keys: &[&Key], files: usize) -> ComparedRow {
    ComparedRow {
        cells: cells(row, keys).to_vec(),
        // The cell of `FUNCTION_NAME` follows those of `keys`.
        function: row.cells.get(keys.len()).cloned().unwrap_or_default(),
        unresolved: row.unresolved,
        periods: vec![None; files],
    }
}

fn cells<'r>(row: &'r HistogramRow, keys: &[&Key]) -> &'r [String] {
    row.cells.get(..keys.len()).unwrap_or(&row.cells)
}

fn names(row: &HistogramRow, keys: &[&Key]) -> RowNames {
    let cells = keys.iter().zip(&row.cells);
    let other_cells = cells.filter(|(key, _)| !key.shows_function());
    // The cell of `FUNCTION_NAME` follows those of `keys`.
    let function = row.cells.get(keys.len());
    other_cells
        .map(|(_, cell)| cell)
        .chain(function)
        .cloned()
        .collect()
}

/// Whether `cells` come before `others`. Each cell is compared by length, then by text; this is the numeric order of hexadecimal
/// addresses. Of rows that are added up, perf shows the lowest address.
fn comes_first(cells: &[String], others: &[String]) -> bool {
    let length_and_text = |cells: &[String]| -> Vec<(usize, String)> {
        let cells = cells.iter().cloned();
        cells.map(|cell| (cell.len(), cell)).collect()
    };
    length_and_text(cells) < length_and_text(others)
}
