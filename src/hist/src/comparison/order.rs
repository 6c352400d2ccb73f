//! The order of compared rows.

use std::cmp::Ordering;

use super::{ComparedRow, Comparison, ComparisonMethod};
use crate::keys::CellPadding;

/// Compares rows, in perf's order: by the values of the chosen file, the periods of the baseline, whether a file other than the
/// baseline has the row, the values of each file, and names.
pub(super) struct RowOrder<'c> {
    pub(super) comparison: &'c Comparison,
    /// The file whose values are compared first. 0 is the baseline: it has no values, so the periods are compared first.
    pub(super) chosen: usize,
}

impl RowOrder<'_> {
    pub(super) fn compare(&self, one: &ComparedRow, other: &ComparedRow) -> Ordering {
        let baseline = |row: &ComparedRow| row.period(0).unwrap_or_default();
        // If cycles are compared, only the basic blocks of a row's function have values, not the row itself.
        let has_values = self.comparison.method != ComparisonMethod::Cycles;
        let by_chosen = || match self.chosen {
            file if file > 0 && has_values => self.by_chosen(one, other, file),
            _ => Ordering::Equal,
        };
        let files = 1..self.comparison.totals.len();
        let by_files = || {
            files
                .map(|file| self.by_value(one, other, file))
                .fold(Ordering::Equal, Ordering::then)
        };
        by_chosen()
            .then_with(|| baseline(other).cmp(&baseline(one)))
            .then_with(|| other.is_in_other_file().cmp(&one.is_in_other_file()))
            .then_with(by_files)
            .then_with(|| self.by_names(one, other))
    }

    /// By the value of the chosen file. Rows with an undefined value (the baseline lacks the row, and shares are not compared)
    /// come after the others; rows that the file lacks come last.
    fn by_chosen(&self, one: &ComparedRow, other: &ComparedRow, file: usize) -> Ordering {
        let is_missing = |row: &ComparedRow| row.period(file).is_none();
        let is_undefined = |row: &ComparedRow| {
            row.period(0).is_none() && !self.comparison.method.compares_shares()
        };
        let by_presence = is_missing(one).cmp(&is_missing(other));
        let (one_undefined, other_undefined) = (is_undefined(one), is_undefined(other));
        by_presence.then_with(|| match one_undefined || other_undefined {
            true => one_undefined.cmp(&other_undefined),
            false => self.by_value(one, other, file),
        })
    }

    /// By the value of a file, descending; rows that the file lacks come last.
    fn by_value(&self, one: &ComparedRow, other: &ComparedRow, file: usize) -> Ordering {
        let absolute = self.comparison.method == ComparisonMethod::AbsoluteDelta;
        let value = |row| self.comparison.computed(row, file);
        match (value(one), value(other)) {
            (Some(one), Some(other)) => one.descending(other, absolute),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }

    /// By the text of the keys: functions by name, unknown ones last, numbers by value.
    fn by_names(&self, one: &ComparedRow, other: &ComparedRow) -> Ordering {
        let cells = one.cells.iter().zip(&other.cells);
        let keys = self.comparison.keys.iter().zip(cells);
        let compared = keys.map(|(key, (one_cell, other_cell))| {
            if key.shows_function() {
                let name = |row: &ComparedRow| (row.function.is_empty(), row.function.clone());
                return name(one).cmp(&name(other));
            }
            match key.pads {
                // The cells of these keys are numbers.
                CellPadding::Before => number(one_cell).cmp(&number(other_cell)),
                _ => Ordering::Equal,
            }
            .then_with(|| one_cell.cmp(other_cell))
        });
        compared.fold(Ordering::Equal, Ordering::then)
    }
}

/// The decimal number that a cell begins with, if any.
fn number(cell: &str) -> Option<u64> {
    let cell = cell.trim_start();
    let end = cell.find(|letter: char| !letter.is_ascii_digit());
    cell.get(..end.unwrap_or(cell.len()))?.parse().ok()
}
