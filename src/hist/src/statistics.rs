//! Confidence intervals of means and of their differences.

use std::f64::consts::FRAC_PI_2;

/// The confidence level of intervals.
const CONFIDENCE: f64 = 0.95;

/// Steps of the numerical integration, an even number.
const STEPS: u32 = 2000;

/// A mean estimated from a sample of values, with its variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The variance of the mean.
    pub variance: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Estimate {
    /// Estimates the mean from at least two values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self::of_squares(count, mean, squares)
    }

    /// Creates the estimate for `count` values, at least two. `squares` is the sum of their squared deviations from
    /// `mean`.
    #[must_use]
    pub fn of_squares(count: f64, mean: f64, squares: f64) -> Self {
        Self {
            mean,
            variance: squares / (count - 1.0) / count,
            freedom: count - 1.0,
        }
    }

    /// Half the width of the 95 % confidence interval of the mean.
    #[must_use]
    pub fn margin(&self) -> f64 {
        match self.variance > 0.0 {
            true => quantile(self.freedom) * self.variance.sqrt(),
            false => 0.0,
        }
    }

    /// Half the width of the 95 % confidence interval of the difference of two means (Welch's t-test). Degrees of freedom are
    /// computed by the Welch-Satterthwaite equation.
    #[must_use]
    pub fn margin_of_difference(&self, other: &Self) -> f64 {
        let variance = self.variance + other.variance;
        if variance <= 0.0 {
            return 0.0;
        }
        let part = |estimate: &Self| estimate.variance.powi(2) / estimate.freedom;
        let freedom = variance.powi(2) / (part(self) + part(other));
        quantile(freedom) * variance.sqrt()
    }
}

/// The value that Student's t with these degrees of freedom (at least 1) exceeds in absolute value with probability
/// `1 - CONFIDENCE`.
///
/// With t = sqrt(freedom) * tan(angle), the density is proportional to cos(angle) to the power of `freedom - 1`. It is
/// integrated by Simpson's rule, up to the angle where the integral reaches `CONFIDENCE` of the whole.
fn quantile(freedom: f64) -> f64 {
    let freedom = freedom.max(1.0);
    let width = FRAC_PI_2 / f64::from(STEPS);
    let density = |angle: f64| angle.cos().max(0.0).powf(freedom - 1.0);
    let areas = (0..STEPS / 2).map(|pair| {
        let start = f64::from(pair) * 2.0 * width;
        let middle = 4.0 * density(start + width);
        (density(start) + middle + density(start + 2.0 * width)) * width / 3.0
    });
    let areas: Vec<f64> = areas.collect();
    let mut remaining = CONFIDENCE * areas.iter().sum::<f64>();
    let mut angle = 0.0;
    for area in areas {
        if area >= remaining {
            // The angle that is looked for is within these two steps: there, the integral from `angle` on is `remaining`. The
            // density is taken as linear between `start` and `end`, so its square is linear in the integral; `reached` is the
            // density at the angle looked for. The distance to it is the integral divided by the mean of `start` and `reached`.
            let (start, end) = (density(angle), density(angle + 2.0 * width));
            let part = remaining / area;
            let reached = (start * start + (end * end - start * start) * part).sqrt();
            angle += 2.0 * width * (start + end) * part / (start + reached);
            break;
        }
        remaining -= area;
        angle += 2.0 * width;
    }
    freedom.sqrt() * angle.tan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_tables() {
        // Tables have three decimals, so their error is up to 0.0005; the rest of 0.002 is for the numerical integration.
        for (freedom, expected) in [
            (1.0, 12.706),
            (2.0, 4.303),
            (4.0, 2.776),
            (10.0, 2.228),
            (30.0, 2.042),
            (120.0, 1.980),
            (10_000.0, 1.960),
        ] {
            let computed = quantile(freedom);
            assert!((computed - expected).abs() < 0.002, "{freedom}: {computed}");
        }
    }

    #[test]
    fn intervals_match_welch() {
        let before = Estimate::of(&[41.0, 44.0, 41.0]);
        let after = Estimate::of(&[51.0, 49.0, 53.0]);
        // Variances 3 and 4, 3 values each: standard error sqrt(3 / 3 + 4 / 3), 3.92 degrees of freedom.
        let computed = before.margin_of_difference(&after);
        let expected = quantile(3.92) * (7.0_f64 / 3.0).sqrt();
        assert!((computed - expected).abs() < 1e-9, "{computed} {expected}");
        // 2.799 * sqrt(7 / 3), with the tolerance of the quantile.
        assert!((computed - 4.275).abs() < 0.002, "{computed}");
    }
}
