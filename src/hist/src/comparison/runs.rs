//! Comparison of two groups of runs: means of shares, and confidence intervals of their differences.

use std::cmp::Ordering;
use std::ops::Range;

use super::{ComparedRow, Comparison};
use crate::statistics::Estimate;

/// The rows of one event in two groups of runs.
///
/// The share of a row in a run is its part of the run's total, so that runs of different lengths can be compared. Differences
/// are tested with Welch's t-test, which allows for different variances: a row is significant if the 95 % confidence interval
/// of its difference excludes 0.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// Number of runs of the baseline, and of the other group.
    pub runs: [usize; 2],
    /// All rows: significant ones first, then by the absolute value of the difference, largest first.
    pub rows: Vec<ComparedRuns>,
}

/// The shares of one row in both groups.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRuns {
    /// The row, with its period in each run.
    pub row: ComparedRow,
    /// Mean share in the baseline, in percent.
    pub baseline: f64,
    /// Mean share in the other group, in percent.
    pub other: f64,
    /// Half the width of the 95 % confidence interval of the difference, in percentage points.
    pub margin: f64,
}

impl RunComparison {
    /// Compares the first `baseline_runs` files of a comparison, one per run, with the others; `None` if a group has fewer than
    /// two runs.
    #[must_use]
    pub fn new(comparison: &Comparison, baseline_runs: usize) -> Option<Self> {
        let files = comparison.totals.len();
        let groups = [0..baseline_runs, baseline_runs..files];
        if groups.iter().any(|group| group.len() < 2) {
            return None;
        }
        let rows = comparison.rows.iter().map(|row| {
            let group_shares = groups.clone().map(|files| shares(comparison, row, files));
            let [baseline, other] = group_shares.map(|shares| Estimate::of(&shares));
            ComparedRuns {
                row: row.clone(),
                baseline: baseline.mean,
                other: other.mean,
                margin: baseline.margin_of_difference(&other),
            }
        });
        let mut rows: Vec<ComparedRuns> = rows.collect();
        // Stable: rows of equal difference keep the order of the comparison.
        rows.sort_by(ComparedRuns::compare);
        Some(Self {
            runs: groups.map(|group| group.len()),
            rows,
        })
    }
}

impl ComparedRuns {
    /// The difference of the means, in percentage points.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.other - self.baseline
    }

    /// Whether the confidence interval of the difference excludes 0.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.difference().abs() > self.margin
    }

    /// The order of [`RunComparison::rows`].
    fn compare(left: &Self, right: &Self) -> Ordering {
        let significant_first = right.is_significant().cmp(&left.is_significant());
        significant_first.then_with(|| right.difference().abs().total_cmp(&left.difference().abs()))
    }
}

/// The share of a row in each run, in percent; 0 in runs without it.
fn shares(comparison: &Comparison, row: &ComparedRow, files: Range<usize>) -> Vec<f64> {
    let share = |file| comparison.share(file, row.period(file).unwrap_or_default());
    files.map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::ComparisonMethod;

    fn row(name: &str, periods: &[u64]) -> ComparedRow {
        ComparedRow {
            cells: vec![name.to_owned()],
            function: name.to_owned(),
            unresolved: false,
            periods: periods.iter().copied().map(Some).collect(),
        }
    }

    #[test]
    fn noise_is_not_significant_and_totals_do_not_matter() {
        let comparison = Comparison {
            method: ComparisonMethod::AbsoluteDelta,
            keys: Vec::new(),
            totals: vec![100, 1000, 10_000, 200, 100, 1000],
            baseline_total: 100,
            rows: vec![
                row("noise", &[10, 300, 2000, 60, 10, 310]),
                row("grown", &[10, 110, 1000, 60, 31, 300]),
            ],
        };
        let runs = RunComparison::new(&comparison, 3).expect("enough runs");
        assert_eq!(runs.runs, [3, 3]);
        let [grown, noise] = &runs.rows[..] else {
            panic!("{runs:?}");
        };
        assert_eq!(
            (&*grown.row.function, grown.is_significant()),
            ("grown", true)
        );
        assert!((grown.difference() - 20.0).abs() < 1e-9, "{grown:?}");
        assert!(!noise.is_significant(), "{noise:?}");
        assert_eq!(RunComparison::new(&comparison, 5), None, "one run");
        assert_eq!(RunComparison::new(&comparison, 1), None, "one run");
    }

    #[test]
    fn without_variance_every_difference_is_significant() {
        let comparison = Comparison {
            method: ComparisonMethod::AbsoluteDelta,
            keys: Vec::new(),
            totals: vec![100; 4],
            baseline_total: 100,
            rows: vec![row("same", &[7; 4]), row("other", &[7, 7, 9, 9])],
        };
        let runs = RunComparison::new(&comparison, 2).expect("enough runs");
        let significance: Vec<_> = runs
            .rows
            .iter()
            .map(|row| (&*row.row.function, row.is_significant()))
            .collect();
        assert_eq!(significance, [("other", true), ("same", false)]);
    }
}
