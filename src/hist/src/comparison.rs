//! Comparison of the histograms of several recordings, for `diff`.
//!
//! ```text
//! histogram of each file --rows by name--> ComparedRow: a period for each file --method--> value, order
//! ```
//!
//! Rows are paired by the text of their keys. A function is paired by its name alone: its address differs between builds.
//! Rows of one file with the same texts are added up, so all code of an object without symbols is one row, as in perf.

mod blocks;
mod order;
mod pairing;
mod runs;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use self::blocks::{BlockLine, ComparedBlock, compare_blocks};
pub use self::runs::{ComparedRuns, RunComparison};

use crate::fields::ReportField;
use crate::histogram::Histogram;
use crate::keys::{FUNCTION_NAME, Key};

/// How two files are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ComparisonMethod {
    /// Difference of the shares in percentage points.
    Delta,
    /// Like [`Self::Delta`], but rows are ordered by the absolute value.
    #[default]
    AbsoluteDelta,
    /// Quotient of the periods.
    Ratio,
    /// Difference of the periods, each multiplied by a weight.
    WeightedDifference {
        /// Weight of the baseline's period.
        baseline: i64,
        /// Weight of the other file's period.
        other: i64,
    },
    /// Differences of the average cycles of basic blocks ([`compare_blocks`]); rows have no value themselves.
    Cycles,
}

/// Options of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparisonOptions {
    /// How files are compared.
    pub method: ComparisonMethod,
    /// The index of the file whose values decide the order of rows; 0: the order of shares in the baseline.
    pub order_file: usize,
    /// Whether to keep only rows that both the baseline and another file have.
    pub baseline_only: bool,
}

/// The rows of one event in several files, the baseline first.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The method of [`Self::value`].
    pub method: ComparisonMethod,
    /// The sort keys of the rows.
    pub keys: Vec<&'static Key>,
    /// The sum of periods of each file, which is 100 percent.
    pub totals: Vec<u64>,
    /// The total for [`Self::baseline_share`]: that of the baseline. With [`ComparisonOptions::baseline_only`] it is the sum
    /// of the baseline's periods in the rows that are kept.
    pub baseline_total: u64,
    /// Sorted rows.
    pub rows: Vec<ComparedRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedRow {
    /// The text of each key, from the first file that has the row.
    pub cells: Vec<String>,
    /// The name of its function; empty if the function is unknown, or not a sort key.
    pub function: String,
    /// Whether its function is unknown.
    pub unresolved: bool,
    /// Its period in each file; `None` if the file has no such row.
    pub periods: Vec<Option<u64>>,
}

/// The result of comparing a row of one file with the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ComparedValue {
    /// Percentage points.
    Percent(f64),
    /// A quotient.
    Ratio(f64),
    /// A weighted difference of periods.
    Weighted(i128),
    /// The method needs a period of the baseline, which has no such row; or rows have no value ([`ComparisonMethod::Cycles`]).
    Undefined,
}

/// Returns the columns that histograms need for a comparison: `columns` and, if a key in `order_by` shows the function, a last
/// column with the function's name, by which rows are paired instead of by that key.
#[must_use]
pub fn compared_columns(columns: &[ReportField], order_by: &[ReportField]) -> Vec<ReportField> {
    let keys = order_by.iter().filter_map(|field| field.key());
    let has_functions = keys.into_iter().any(Key::shows_function);
    let name = has_functions.then_some(ReportField::Key(&FUNCTION_NAME));
    columns.iter().copied().chain(name).collect()
}

impl Comparison {
    /// Compares the histograms of one event. `files` has one for each file, the baseline first, and `None` for files without
    /// the event. The columns of the histograms are those of [`compared_columns`].
    #[must_use]
    pub fn new(files: &[Option<&Histogram>], options: &ComparisonOptions) -> Self {
        let totals: Vec<u64> = files.iter().map(|file| total(*file)).collect();
        let mut rows = pairing::pair_rows(files);
        if options.baseline_only {
            rows.retain(|row| row.period(0).is_some() && row.is_in_other_file());
        }
        let kept = rows.iter().filter_map(|row| row.period(0));
        let kept_total = kept.fold(0_u64, u64::saturating_add);
        let mut comparison = Self {
            method: options.method,
            keys: pairing::keys(files),
            baseline_total: match options.baseline_only {
                true => kept_total,
                false => totals.first().copied().unwrap_or_default(),
            },
            totals,
            rows: Vec::new(),
        };
        comparison.sort(&mut rows, options.order_file);
        comparison.rows = rows;
        comparison
    }

    /// The share of a period in a file, in percent; 0 without samples.
    #[must_use]
    pub fn share(&self, file: usize, period: u64) -> f64 {
        percent(period, self.totals.get(file).copied().unwrap_or_default())
    }

    /// The share of a row in the baseline, in percent of [`Self::baseline_total`]; `None` if the baseline has no such row.
    #[must_use]
    pub fn baseline_share(&self, row: &ComparedRow) -> Option<f64> {
        Some(percent(row.period(0)?, self.baseline_total))
    }

    /// Compares the row of a file with the row of the baseline; `None` if the file has no such row.
    #[must_use]
    pub fn value(&self, row: &ComparedRow, file: usize) -> Option<ComparedValue> {
        let value = self.computed(row, file)?;
        match row.period(0) {
            None if !self.method.compares_shares() => Some(ComparedValue::Undefined),
            _ => Some(value),
        }
    }

    /// The change of a row's share from the baseline to a file, in percentage points. A missing row has a share of 0.
    #[must_use]
    pub fn change(&self, row: &ComparedRow, file: usize) -> f64 {
        let share = |file| self.share(file, row.period(file).unwrap_or_default());
        share(file) - share(0)
    }

    /// Like [`Self::value`], but computed with a period of 0 if the baseline has no such row.
    fn computed(&self, row: &ComparedRow, file: usize) -> Option<ComparedValue> {
        let new = row.period(file)?;
        let old = row.period(0).unwrap_or_default();
        Some(match self.method {
            ComparisonMethod::Delta | ComparisonMethod::AbsoluteDelta => {
                ComparedValue::Percent(self.share(file, new) - self.share(0, old))
            }
            ComparisonMethod::Ratio => ComparedValue::Ratio(new as f64 / old.max(1) as f64),
            ComparisonMethod::WeightedDifference { baseline, other } => {
                let weighted =
                    |period: u64, weight: i64| i128::from(period).saturating_mul(weight.into());
                let difference = weighted(new, other).saturating_sub(weighted(old, baseline));
                ComparedValue::Weighted(difference)
            }
            ComparisonMethod::Cycles => ComparedValue::Undefined,
        })
    }

    fn sort(&self, rows: &mut [ComparedRow], order_file: usize) {
        let row_order = order::RowOrder {
            comparison: self,
            chosen: order_file,
        };
        rows.sort_by(|one, other| row_order.compare(one, other));
    }
}

impl ComparisonMethod {
    /// Whether shares are compared: then a row that the baseline lacks has a value, too, since its share is 0.
    fn compares_shares(self) -> bool {
        matches!(self, Self::Delta | Self::AbsoluteDelta)
    }
}

impl ComparedRow {
    /// The period of the row in a file; `None` if the file has no such row.
    #[must_use]
    pub fn period(&self, file: usize) -> Option<u64> {
        self.periods.get(file).copied().flatten()
    }

    /// Whether a file other than the baseline has the row.
    #[must_use]
    pub fn is_in_other_file(&self) -> bool {
        self.periods.iter().skip(1).any(Option::is_some)
    }
}

impl ComparedValue {
    /// Compares two values for descending order; `absolute` ignores the sign of percentages.
    fn descending(self, other: Self, absolute: bool) -> Ordering {
        match (self, other) {
            (Self::Percent(one), Self::Percent(other)) if absolute => {
                other.abs().total_cmp(&one.abs())
            }
            (Self::Percent(one), Self::Percent(other)) | (Self::Ratio(one), Self::Ratio(other)) => {
                other.total_cmp(&one)
            }
            (Self::Weighted(one), Self::Weighted(other)) => other.cmp(&one),
            _ => Ordering::Equal,
        }
    }
}

/// The sum of a file's periods. Each histogram of a comparison has a single event, so a single total.
fn total(file: Option<&Histogram>) -> u64 {
    let total = file.and_then(|histogram| histogram.totals.first());
    total.map_or(0, |total| total.period)
}

/// A part in percent, calculated in perf's order of operations; 0 if `whole` is 0.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 * 100.0 / whole as f64,
    }
}
