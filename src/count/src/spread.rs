//! Mean and standard error of repeated measurements.

/// Mean and squared deviations, updated incrementally (Welford's method: Knuth, The Art of Computer
/// Programming, vol. 2, 4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    number: u32,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
}

impl Spread {
    /// Adds one value.
    pub fn add(&mut self, value: f64) {
        self.number += 1;
        let distance = value - self.mean;
        self.mean += distance / f64::from(self.number);
        self.squares += distance * (value - self.mean);
    }

    /// Number of values.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The mean; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard error of the mean; 0 for less than two values.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        if self.number < 2 {
            return 0.0;
        }
        let variance = self.squares / f64::from(self.number - 1);
        (variance / f64::from(self.number)).sqrt()
    }

    /// The standard error in percent of the mean; 0 if the mean is 0.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        if self.mean == 0.0 {
            return 0.0;
        }
        100.0 * self.standard_error() / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Spread {
        let mut spread = Spread::default();
        values.iter().for_each(|value| spread.add(*value));
        spread
    }

    #[test]
    fn the_standard_error_is_that_of_the_mean() {
        let spread = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(spread.mean(), 5.0);
        let sample_deviation = (32.0_f64 / 7.0).sqrt();
        assert!((spread.standard_error() - sample_deviation / 8.0_f64.sqrt()).abs() < 1e-12);
        // 20 is 100 percent divided by the mean, 5.
        assert!((spread.error_percent() - 20.0 * spread.standard_error()).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_error_and_a_mean_of_zero_no_percentage() {
        assert_eq!((of(&[3.0]).mean(), of(&[3.0]).standard_error()), (3.0, 0.0));
        assert_eq!(of(&[]).mean(), 0.0);
        assert_eq!(of(&[1.0, -1.0]).error_percent(), 0.0);
    }
}
