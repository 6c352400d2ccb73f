//! The numbers of a row.

use rperf_hist::{ComparedRow, ComparedValue, Comparison, ComparisonMethod};

use super::{DiffColumn, NumberColumn};
use crate::padding::LeftAligned;
use crate::percent::Percent;

/// A number as text, and what colours it.
pub(super) struct DiffCell {
    pub(super) text: String,
    pub(super) share: Option<Percent>,
}

impl DiffCell {
    fn blank() -> Self {
        Self::plain(String::new())
    }

    fn plain(text: String) -> Self {
        Self { text, share: None }
    }

    /// The text in a line of separated values: perf writes the baseline's share without a percent sign, but that of deltas.
    pub(super) fn bare(&self) -> &str {
        let text = self.text.trim();
        match text.starts_with(['+', '-']) {
            true => text,
            false => text.trim_end_matches('%'),
        }
    }
}

impl DiffColumn {
    pub(super) fn cell(&self, comparison: &Comparison, row: &ComparedRow) -> DiffCell {
        let number = |number: u64| DiffCell::plain(number.to_string());
        match self.kind {
            NumberColumn::Baseline => match comparison.baseline_share(row) {
                Some(share) => DiffCell {
                    text: format!("{share:.2}%"),
                    share: Some(Percent::magnitude(share)),
                },
                None => DiffCell::blank(),
            },
            NumberColumn::BaselinePeriod => number(row.period(0).unwrap_or_default()),
            NumberColumn::Value => match comparison.value(row, self.file) {
                Some(value) => of_value(value, self.width),
                None => DiffCell::blank(),
            },
            NumberColumn::Formula => DiffCell::plain(formula(comparison, row, self.file)),
            NumberColumn::Period => row.period(self.file).map_or_else(DiffCell::blank, number),
        }
    }
}

fn of_value(value: ComparedValue, width: usize) -> DiffCell {
    let (text, magnitude) = match value {
        ComparedValue::Percent(delta) => (format!("{delta:+.2}%"), delta),
        ComparedValue::Ratio(ratio) => (format!("{ratio:.6}"), ratio),
        // perf's field has 14 characters, also in a wider column.
        ComparedValue::Weighted(difference) => {
            let text = format!("{difference:>14}");
            (LeftAligned(&text, width).to_string(), difference as f64)
        }
        _ => return DiffCell::plain("N/A".to_owned()),
    };
    DiffCell {
        text,
        share: Some(Percent::magnitude(magnitude)),
    }
}

/// The calculation of a value; empty if the file does not have the row.
fn formula(comparison: &Comparison, row: &ComparedRow, file: usize) -> String {
    let Some(new) = row.period(file) else {
        return String::new();
    };
    let old = row.period(0).unwrap_or_default();
    match comparison.method {
        ComparisonMethod::Delta | ComparisonMethod::AbsoluteDelta => {
            let total = comparison.totals.get(file).copied().unwrap_or_default();
            let baseline = comparison.baseline_total;
            format!("({new} * 100 / {total}) - ({old} * 100 / {baseline})")
        }
        ComparisonMethod::Ratio => format!("{new} / {old}"),
        ComparisonMethod::WeightedDifference { baseline, other } => {
            format!("({new} * {other}) - ({old} * {baseline})")
        }
    }
}
