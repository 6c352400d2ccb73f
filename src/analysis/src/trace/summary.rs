//! Counts and times of calls by thread.

use std::collections::BTreeMap;

/// The calls of all threads.
#[derive(Debug, Clone, Default)]
pub struct CallSummary {
    /// By thread, sorted by its number.
    pub threads: BTreeMap<u32, ThreadCalls>,
    /// All events.
    pub events: u64,
}

/// The calls of one thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadCalls {
    /// The thread's last name.
    pub comm: String,
    /// Entries and returns, and its other events.
    pub events: u64,
    /// By the number of the call.
    pub calls: BTreeMap<u32, CallStatistics>,
}

/// The calls of one kind.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallStatistics {
    /// How often it returned.
    pub count: u64,
    /// How often it failed.
    pub errors: u64,
    /// The failures by error number.
    pub by_error: BTreeMap<u32, u64>,
    /// The shortest and the longest time in nanoseconds.
    pub min: u64,
    /// The longest time in nanoseconds.
    pub max: u64,
    mean: f64,
    /// The sum of squared differences from the mean (Welford's method).
    squares: f64,
}

impl CallStatistics {
    /// Adds a call of `nanos` that returned `result`.
    pub fn add(&mut self, nanos: u64, result: i64) {
        self.min = match self.count {
            0 => nanos,
            _ => self.min.min(nanos),
        };
        self.max = self.max.max(nanos);
        self.count += 1;
        let delta = nanos as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (nanos as f64 - self.mean);
        if let Some(error) = error_number(result) {
            self.errors += 1;
            *self.by_error.entry(error).or_default() += 1;
        }
    }

    /// Returns the mean time in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the total time in nanoseconds.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.mean * self.count as f64
    }

    /// Returns the standard error of the mean in percent of the mean; 0 of fewer than two calls.
    #[must_use]
    pub fn deviation_percent(&self) -> f64 {
        if self.count < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let count = self.count as f64;
        let of_mean = (self.squares / (count - 1.0) / count).sqrt();
        100.0 * of_mean / self.mean
    }
}

/// Returns the error number of a result; `None` if the call succeeded.
pub(super) fn error_number(result: i64) -> Option<u32> {
    (-4095..0)
        .contains(&result)
        .then(|| u32::try_from(-result).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_times() {
        let mut calls = CallStatistics::default();
        for (nanos, result) in [(10, 0), (20, -2), (30, -2)] {
            calls.add(nanos, result);
        }
        assert_eq!((calls.min, calls.max, calls.errors), (10, 30, 2));
        assert_eq!(calls.by_error.get(&2), Some(&2));
        assert!((calls.total() - 60.0).abs() < 1e-9);
        // The deviation is 10, the error of the mean 10/sqrt(3).
        assert!((calls.deviation_percent() - 28.867).abs() < 1e-2);
    }
}
