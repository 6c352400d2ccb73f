//! Comparison of a result with an earlier one: whether they differ by more than chance explains.

use crate::series::t_95;
use crate::{Better, Series};

/// The kind of difference of a result from an earlier one. Whether lower or higher values are better is in `crate::Better`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Better, at a confidence of 95 %.
    Better,
    /// Worse, at a confidence of 95 %.
    Worse,
    /// No difference beyond chance, at a confidence of 95 %.
    Same,
    /// Both results have only one run, or at least one of them has none.
    Unknown,
}

/// A result compared with an earlier one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Change of the mean, in percent of the earlier mean; 0 if that is 0.
    pub change_percent: f64,
    /// Half the width of the 95 % confidence interval of the change, in percent of the earlier mean; 0 if that is 0. `None` if
    /// the verdict is [`Verdict::Unknown`].
    pub margin_percent: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares `later` with `earlier` by Student's t-test for two samples of the same variance.
    #[must_use]
    pub fn new(earlier: &Series, later: &Series) -> Self {
        let [old, new] = [earlier, later].map(Series::spread);
        let [old_runs, new_runs] = [earlier, later].map(|series| series.samples.len());
        let difference = new.mean() - old.mean();
        let percent = |value: f64| match old.mean() {
            0.0 => 0.0,
            mean => 100.0 * value / mean.abs(),
        };
        // The sum of the squared deviations of all samples from the mean of their series.
        let squares: f64 = [old, new]
            .iter()
            .map(|spread| {
                let runs = f64::from(spread.number());
                spread.standard_error().powi(2) * runs * (runs - 1.0).max(0.0)
            })
            .sum();
        let freedom = (old_runs + new_runs).saturating_sub(2);
        // Half the width of the confidence interval of the difference, in the unit of the samples.
        let interval = (freedom > 0 && old_runs > 0 && new_runs > 0).then(|| {
            let variance = squares / freedom as f64;
            t_95(freedom) * (variance * (1.0 / old_runs as f64 + 1.0 / new_runs as f64)).sqrt()
        });
        let improved = match later.better {
            Better::Lower => difference < 0.0,
            Better::Higher => difference > 0.0,
        };
        let verdict = match interval {
            None => Verdict::Unknown,
            Some(interval) if difference.abs() <= interval => Verdict::Same,
            Some(_) if improved => Verdict::Better,
            Some(_) => Verdict::Worse,
        };
        Self {
            change_percent: percent(difference),
            margin_percent: interval.map(percent),
            verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn series(better: Better, samples: &[f64]) -> Series {
        let value = match better {
            Better::Lower => Value::lower_is_better("x", 0.0),
            Better::Higher => Value::higher_is_better("x", 0.0),
        };
        let mut series = Series::empty_like(&value);
        samples.iter().for_each(|sample| series.add(*sample));
        series
    }

    #[test]
    fn a_difference_beyond_chance_has_a_direction() {
        let old = [10.0, 10.1, 9.9, 10.0];
        let new = [12.0, 12.1, 11.9, 12.0];
        let compare = |better| Comparison::new(&series(better, &old), &series(better, &new));
        assert_eq!(compare(Better::Lower).verdict, Verdict::Worse);
        assert_eq!(compare(Better::Higher).verdict, Verdict::Better);
        let worse = compare(Better::Lower);
        assert!((worse.change_percent - 20.0).abs() < 1e-9);
        // Pooled deviation 0.08165, t of 6 degrees of freedom 2.447. The root is that of 1/4 + 1/4, for 4 samples in each series.
        // The last factor converts to percent of the earlier mean, 10: 100 / 10. The tolerance is for the rounded deviation.
        let interval = 2.447 * 0.081_649_66 * 0.5_f64.sqrt() * 10.0;
        assert!((worse.margin_percent.unwrap() - interval).abs() < 1e-5);
    }

    #[test]
    fn noise_is_no_difference_and_two_single_runs_are_unknown() {
        let series_of = |samples: &[f64]| series(Better::Lower, samples);
        let same = Comparison::new(
            &series_of(&[10.0, 14.0, 12.0]),
            &series_of(&[11.0, 13.0, 15.0]),
        );
        assert_eq!(same.verdict, Verdict::Same);
        let single = Comparison::new(&series_of(&[10.0]), &series_of(&[20.0]));
        assert_eq!(
            (single.verdict, single.margin_percent),
            (Verdict::Unknown, None)
        );
        let one_earlier = Comparison::new(&series_of(&[10.0]), &series_of(&[20.0, 20.1, 19.9]));
        assert_eq!(one_earlier.verdict, Verdict::Worse);
    }
}
