//! Comparison of two groups of runs: means of shares, and confidence intervals of their differences.

use std::cmp::Ordering;
use std::f64::consts::FRAC_PI_2;
use std::ops::Range;

use super::{ComparedRow, Comparison};

/// The confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Steps of the numeric integration, an even number; three digits of a quantile are shown.
const STEPS: u32 = 2000;

/// The rows of one event in two groups of runs.
///
/// The share of a row in a run is its part of the run's total, so that runs of different lengths can be compared. Differences are tested
/// with Welch's t-test, which allows for different variances: a row is significant if the 95 % interval of its difference excludes 0.
#[derive(Debug, Clone, PartialEq)]
pub struct RunComparison {
    /// Number of runs of the baseline, and of the other group.
    pub runs: [usize; 2],
    /// All rows: significant ones first, by the absolute value of the difference.
    pub rows: Vec<ComparedRuns>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRuns {
    /// Its keys, and its periods in each run.
    pub row: ComparedRow,
    /// Mean share in the baseline, in percent.
    pub baseline: f64,
    /// Mean share in the other group, in percent.
    pub other: f64,
    /// Half the width of the 95 % confidence interval of the difference, in percentage points.
    pub margin: f64,
}

impl RunComparison {
    /// Compares the first `baseline` files of a comparison with the others; `None` if a group has fewer than two runs.
    #[must_use]
    pub fn new(comparison: &Comparison, baseline: usize) -> Option<Self> {
        let files = comparison.totals.len();
        let groups = [0..baseline, baseline..files];
        if groups.iter().any(|group| group.len() < 2) {
            return None;
        }
        let rows = comparison.rows.iter().map(|row| {
            let samples = groups.clone().map(|files| shares(comparison, row, files));
            let [before, after] = samples.map(|shares| Estimate::of(&shares));
            ComparedRuns {
                row: row.clone(),
                baseline: before.mean,
                other: after.mean,
                margin: margin(&before, &after),
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

    fn compare(one: &Self, other: &Self) -> Ordering {
        let significant = other.is_significant().cmp(&one.is_significant());
        significant.then_with(|| other.difference().abs().total_cmp(&one.difference().abs()))
    }
}

/// The share of a row in each run, in percent; 0 in runs without it.
fn shares(comparison: &Comparison, row: &ComparedRow, files: Range<usize>) -> Vec<f64> {
    let share = |file| comparison.share(file, row.period(file).unwrap_or_default());
    files.map(share).collect()
}

/// Mean of a group, with the variance of that mean.
struct Estimate {
    mean: f64,
    variance: f64,
    /// Degrees of freedom.
    freedom: f64,
}

impl Estimate {
    /// Of at least two values.
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            mean,
            variance: squares / (count - 1.0) / count,
            freedom: count - 1.0,
        }
    }
}

/// Half the width of the confidence interval of a difference of means: degrees of freedom by Welch and Satterthwaite.
fn margin(one: &Estimate, other: &Estimate) -> f64 {
    let variance = one.variance + other.variance;
    if variance <= 0.0 {
        return 0.0;
    }
    let part = |estimate: &Estimate| estimate.variance.powi(2) / estimate.freedom;
    let freedom = variance.powi(2) / (part(one) + part(other));
    quantile(freedom) * variance.sqrt()
}

/// The value that Student's t with these degrees of freedom (at least 1) exceeds in absolute value with probability `1 - CONFIDENCE`.
///
/// With t = sqrt(freedom) * tan(angle), the density is proportional to cos(angle) to the power of `freedom - 1`. Its integral is
/// calculated by Simpson's rule, up to the angle that has the wanted part of the whole.
fn quantile(freedom: f64) -> f64 {
    let freedom = freedom.max(1.0);
    let width = FRAC_PI_2 / f64::from(STEPS);
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    let pairs = (0..STEPS / 2).map(|pair| {
        let start = f64::from(pair) * 2.0 * width;
        let middle = 4.0 * density(start + width);
        (density(start) + middle + density(start + 2.0 * width)) * width / 3.0
    });
    let pairs: Vec<f64> = pairs.collect();
    let mut wanted = CONFIDENCE * pairs.iter().sum::<f64>();
    let mut angle = 0.0;
    for area in pairs {
        if area >= wanted {
            // The density is nearly linear within a step.
            let (start, end) = (density(angle), density(angle + 2.0 * width));
            let part = wanted / area;
            let root = (start * start + (end * end - start * start) * part).sqrt();
            angle += 2.0 * width * (start + end) * part / (start + root);
            break;
        }
        wanted -= area;
        angle += 2.0 * width;
    }
    freedom.sqrt() * angle.tan()
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
    fn quantiles_are_those_of_tables() {
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (4.0, 2.776),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
            (10_000.0, 1.960),
        ] {
            let found = quantile(freedom);
            assert!((found - expected).abs() < 0.002, "{freedom}: {found}");
        }
    }

    #[test]
    fn intervals_are_those_of_welch() {
        let before = Estimate::of(&[41.0, 44.0, 41.0]);
        let after = Estimate::of(&[51.0, 49.0, 53.0]);
        // Variances 3 and 4 by 3 runs: standard error sqrt(7 / 3), 3.92 degrees of freedom.
        let found = margin(&before, &after);
        let expected = quantile(3.92) * (7.0_f64 / 3.0).sqrt();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        assert!((found - 4.275).abs() < 0.002, "{found}");
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
    fn runs_without_any_variance_have_no_margin() {
        let comparison = Comparison {
            method: ComparisonMethod::AbsoluteDelta,
            keys: Vec::new(),
            totals: vec![100; 4],
            baseline_total: 100,
            rows: vec![row("same", &[7; 4]), row("other", &[7, 7, 9, 9])],
        };
        let runs = RunComparison::new(&comparison, 2).expect("enough runs");
        let found: Vec<_> = runs
            .rows
            .iter()
            .map(|row| (&*row.row.function, row.is_significant()))
            .collect();
        assert_eq!(found, [("other", true), ("same", false)]);
    }
}
