//! Measured values of several runs, their mean and its confidence interval.

use rperf_count::Spread;
use serde::{Deserialize, Serialize};

/// Two-sided quantiles of Student's t-distribution at 95 %, for 1 to 30 degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The two-sided quantile of the normal distribution at 95 %.
const NORMAL_95: f64 = 1.960;

/// The direction in which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower values are better, such as times.
    Lower,
    /// Higher values are better, such as rates.
    Higher,
}

/// One measured value.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// What was measured, such as a function or an operation, if the benchmark has several values; otherwise empty.
    pub variant: String,
    /// The unit, such as `usecs/op`.
    pub unit: &'static str,
    /// The direction in which values are better.
    pub better: Better,
    /// The value.
    pub value: f64,
}

impl Value {
    /// Creates a value for which lower is better, such as a time.
    #[must_use]
    pub fn lower_is_better(unit: &'static str, value: f64) -> Self {
        Self {
            variant: String::new(),
            unit,
            better: Better::Lower,
            value,
        }
    }

    /// Creates a value for which higher is better, such as a rate.
    #[must_use]
    pub fn higher_is_better(unit: &'static str, value: f64) -> Self {
        Self {
            better: Better::Higher,
            ..Self::lower_is_better(unit, value)
        }
    }

    /// Sets what was measured, for a benchmark with several values.
    #[must_use]
    pub fn with_variant(self, variant: impl Into<String>) -> Self {
        Self {
            variant: variant.into(),
            ..self
        }
    }
}

/// The values of one measurement in all runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What was measured, if the benchmark has several values; otherwise empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The unit.
    pub unit: String,
    /// The direction in which values are better.
    pub better: Better,
    /// The mean of the samples.
    pub mean: f64,
    /// The standard error of the mean, in percent of the mean; 0 for fewer than two runs, or if the mean is 0.
    pub deviation_percent: f64,
    /// The samples: the value of each run, in the order of the runs.
    pub samples: Vec<f64>,
}

impl Series {
    /// Returns an empty series for values like this one. Does not add the value.
    #[must_use]
    pub fn empty_like(value: &Value) -> Self {
        Self {
            variant: value.variant.clone(),
            unit: value.unit.to_owned(),
            better: value.better,
            mean: 0.0,
            deviation_percent: 0.0,
            samples: Vec::new(),
        }
    }

    /// Adds the value of another run.
    pub fn add(&mut self, value: f64) {
        self.samples.push(value);
        let spread = self.spread();
        self.mean = spread.mean();
        self.deviation_percent = spread.error_percent();
    }

    /// Returns the mean of the samples and its standard error.
    #[must_use]
    pub fn spread(&self) -> Spread {
        let mut spread = Spread::default();
        self.samples.iter().for_each(|value| spread.add(*value));
        spread
    }

    /// Returns half the width of the 95 % confidence interval of the mean, in percent of the mean; 0 if the mean is 0. `None` for
    /// fewer than two samples.
    #[must_use]
    pub fn margin_percent(&self) -> Option<f64> {
        let freedom = self.samples.len().checked_sub(1).filter(|n| *n > 0)?;
        Some(t_95(freedom) * self.spread().error_percent().abs())
    }
}

/// Returns the two-sided quantile of Student's t-distribution at 95 %, for `freedom` degrees of freedom.
pub(crate) fn t_95(freedom: usize) -> f64 {
    let index = freedom.max(1) - 1;
    let [.., last] = T_95;
    T_95.get(index).copied().unwrap_or_else(|| {
        // Beyond the table, the difference from the normal distribution's quantile decreases about as 1/`freedom`. The error is
        // less than 0.001.
        NORMAL_95 + (last - NORMAL_95) * T_95.len() as f64 / freedom as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_t_distribution() {
        let mut series = Series::empty_like(&Value::lower_is_better("ns", 0.0));
        series.add(10.0);
        assert_eq!(series.margin_percent(), None);
        for sample in [12.0, 14.0] {
            series.add(sample);
        }
        // Standard deviation of the samples 2, standard error 2 / sqrt 3, two degrees of freedom.
        let expected = 4.303 * 2.0 / 3.0_f64.sqrt() / 12.0 * 100.0;
        assert!((series.margin_percent().unwrap() - expected).abs() < 1e-9);
        assert_eq!((series.mean, series.samples.len()), (12.0, 3));
    }

    #[test]
    fn quantiles_beyond_the_table_approach_the_normal_distribution() {
        // 1 and 30 degrees of freedom are the ends of the table; the quantiles of 60 and 120 are from printed tables. The
        // tolerance is the error of less than 0.001, plus the rounding of the printed quantiles.
        for (freedom, quantile) in [(1, 12.706), (30, 2.042), (60, 2.000), (120, 1.980)] {
            assert!((t_95(freedom) - quantile).abs() < 2e-3, "{freedom}");
        }
    }
}
