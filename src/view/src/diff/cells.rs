//! The numbers of a row.

use rperf_count::Spread;
use rperf_hist::{
    BlockLine, ComparedBlock, ComparedRow, ComparedValue, Comparison, ComparisonMethod,
};

use super::{DiffColumn, NumberColumn};
use crate::padding::LeftAligned;
use crate::percent::Percent;

/// A number as text, and the magnitude that determines its colour; `None` for no colour.
pub(super) struct DiffCell {
    pub(super) text: String,
    pub(super) magnitude: Option<Percent>,
}

impl DiffCell {
    fn blank() -> Self {
        Self::plain(String::new())
    }

    fn plain(text: String) -> Self {
        Self {
            text,
            magnitude: None,
        }
    }

    /// The text in a line of separated values: as in perf, without the percent sign of the baseline's share, but with that of
    /// deltas, which begin with `+` or `-`.
    pub(super) fn bare(&self) -> &str {
        let text = self.text.trim();
        match text.starts_with(['+', '-']) {
            true => text,
            false => text.trim_end_matches('%'),
        }
    }
}

impl DiffColumn {
    /// The cell of a row or, if `line` is given, of that line of its blocks.
    pub(super) fn cell(
        &self,
        comparison: &Comparison,
        row: &ComparedRow,
        line: Option<&BlockLine>,
    ) -> DiffCell {
        // The blocks of a line begin with that of file 1: file 0 is the baseline.
        let block = line.and_then(|line| line.get(self.file.checked_sub(1)?)?.as_ref());
        let number = |number: u64| DiffCell::plain(number.to_string());
        match self.kind {
            NumberColumn::Baseline => match comparison.baseline_share(row) {
                Some(share) => DiffCell {
                    text: format!("{share:.2}%"),
                    magnitude: Some(Percent::magnitude(share)),
                },
                None => DiffCell::blank(),
            },
            NumberColumn::BaselinePeriod => number(row.period(0).unwrap_or_default()),
            NumberColumn::Value if line.is_some() => {
                DiffCell::plain(block.map_or_else(String::new, of_block))
            }
            NumberColumn::CyclesHistogram => {
                DiffCell::plain(block.map_or_else(String::new, of_first_cycles))
            }
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
    let (text, number) = match value {
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
        magnitude: Some(Percent::magnitude(number)),
    }
}

/// The range of a block and the difference of its cycles.
fn of_block(compared: &ComparedBlock) -> String {
    let [start, end] = &compared.block.range;
    format!("[{start} -> {end}] {:>4}", compared.difference)
}

/// The relative standard error of the differences of cycles, one for each of the first executions, and a bar for each difference.
/// Empty for fewer than two differences, or if all are 0.
fn of_first_cycles(compared: &ComparedBlock) -> String {
    /// Width of perf's column in bytes, not characters: shorter texts are padded.
    const BYTES: usize = 17;
    /// The maximum number of bars: perf keeps the cycles of the first 8 executions of a block.
    const MAX_BARS: usize = 8;
    let differences = &compared.first_differences;
    if differences.len() < 2 || differences.iter().all(|difference| *difference == 0) {
        return String::new();
    }
    let mut spread = Spread::default();
    for difference in differences {
        spread.add(*difference as f64);
    }
    let text = format!(
        "\u{b1}{:5.1}% {} ",
        spread.error_percent(),
        bars(differences)
    );
    let before = " ".repeat(BYTES.saturating_sub(text.len()));
    let after = " ".repeat(MAX_BARS.saturating_sub(differences.len()));
    format!("{before}{text}{after}")
}

/// Returns a bar for each number, scaled from the lowest to the highest one, in perf's fixed-point arithmetic with 8 fractional
/// bits.
fn bars(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const PARTS: u128 = 256;
    let least = numbers.iter().min().copied().unwrap_or_default();
    let most = numbers.iter().max().copied().unwrap_or_default();
    let above = |number: u64| u128::from(number - least) * PARTS;
    let step = (above(most) / (BARS.len() as u128 - 1)).max(1);
    let bar = |number: &u64| {
        let place = usize::try_from(above(*number) / step).unwrap_or(usize::MAX);
        BARS.get(place).copied().unwrap_or('█')
    };
    numbers.iter().map(bar).collect()
}

/// The calculation of a value; empty if the file does not have the row, or if rows have no value
/// ([`ComparisonMethod::Cycles`]).
fn formula(comparison: &Comparison, row: &ComparedRow, file: usize) -> String {
    let Some(new) = row.period(file) else {
        return String::new();
    };
    let old = row.period(0).unwrap_or_default();
    match comparison.method {
        ComparisonMethod::Delta | ComparisonMethod::AbsoluteDelta => {
            let total = comparison.totals.get(file).copied().unwrap_or_default();
            let baseline_total = comparison.baseline_total;
            format!("({new} * 100 / {total}) - ({old} * 100 / {baseline_total})")
        }
        ComparisonMethod::Ratio => format!("{new} / {old}"),
        ComparisonMethod::Cycles => String::new(),
        // `baseline` and `other` are weights.
        ComparisonMethod::WeightedDifference { baseline, other } => {
            format!("({new} * {other}) - ({old} * {baseline})")
        }
    }
}
