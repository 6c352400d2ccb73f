//! Counts and times of system calls by thread.

use std::collections::BTreeMap;

use rperf_syscalls::error_number;

/// The calls of all threads.
#[derive(Debug, Clone, Default)]
pub struct CallSummary {
    /// The calls of each thread, by thread id.
    pub threads: BTreeMap<u32, ThreadCalls>,
    /// The number of events of all threads: entries and returns of selected calls, and other events.
    pub events: u64,
}

impl CallSummary {
    /// Adds a sched:sched_stat_runtime event to its thread: its `fields` include the thread id as `pid`, and `runtime` in
    /// nanoseconds.
    pub(super) fn add_run_time(&mut self, fields: &[(String, String)]) {
        let field = |name: &str| {
            let (_, value) = fields.iter().find(|(field, _)| field == name)?;
            value.parse::<u64>().ok()
        };
        let tid = field("pid").and_then(|tid| u32::try_from(tid).ok());
        if let (Some(tid), Some(time)) = (tid, field("runtime")) {
            let sum = &mut self.threads.entry(tid).or_default().run_time;
            *sum = sum.saturating_add(time);
        }
    }

    /// Returns the sums of all threads as those of one thread with the id 0 and no name.
    #[must_use]
    pub fn total(&self) -> Self {
        let mut all = ThreadCalls::default();
        for thread in self.threads.values() {
            all.events += thread.events;
            all.run_time = all.run_time.saturating_add(thread.run_time);
            all.major_faults += thread.major_faults;
            all.minor_faults += thread.minor_faults;
            for (number, calls) in &thread.calls {
                all.calls.entry(*number).or_default().merge(calls);
            }
        }
        Self {
            threads: BTreeMap::from([(0, all)]),
            events: self.events,
        }
    }
}

/// The calls of one thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadCalls {
    /// The thread's name; empty if unknown.
    pub comm: String,
    /// The number of the thread's events: entries and returns of selected calls, and other events.
    pub events: u64,
    /// Page faults that waited for a device, if they were recorded.
    pub major_faults: u64,
    /// Other page faults.
    pub minor_faults: u64,
    /// The time on CPUs in nanoseconds, if it was recorded.
    pub run_time: u64,
    /// Statistics by the number of the system call.
    pub calls: BTreeMap<u32, CallStatistics>,
}

/// The number and times of the calls with one number.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallStatistics {
    /// The number of calls that returned.
    pub count: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// The number of failures by errno.
    pub by_error: BTreeMap<u32, u64>,
    /// The shortest time in nanoseconds.
    pub min: u64,
    /// The longest time in nanoseconds.
    pub max: u64,
    mean: f64,
    /// The sum of squared differences from the mean (Welford's method).
    squares: f64,
}

impl CallStatistics {
    /// Adds a call that took `nanos` nanoseconds and returned `result`.
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

    /// Adds the calls that `other` has counted (Chan's method).
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = match self.count {
            0 => other.min,
            _ => self.min.min(other.min),
        };
        self.max = self.max.max(other.max);
        let (own, added) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        self.mean += delta * added / (own + added);
        self.squares += other.squares + delta * delta * own * added / (own + added);
        self.count += other.count;
        self.errors += other.errors;
        for (error, count) in &other.by_error {
            *self.by_error.entry(*error).or_default() += count;
        }
    }

    /// Sets the mean and its standard error from the sum of the times of all `count` calls, in nanoseconds, and the sum of the
    /// squares of these times. Does nothing if `count` is 0.
    pub fn set_sums(&mut self, total: u64, sum_of_squares: u128) {
        if self.count == 0 {
            return;
        }
        self.mean = total as f64 / self.count as f64;
        // `sum_of_squares - total² / count`, in integers: floating point would lose this small difference of large numbers.
        let count = u128::from(self.count);
        let squared_total = u128::from(total) * u128::from(total);
        self.squares = match sum_of_squares.checked_mul(count) {
            Some(product) => product.saturating_sub(squared_total) as f64 / self.count as f64,
            None => sum_of_squares.saturating_sub(squared_total / count) as f64,
        };
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

    /// Returns the standard error of the mean in percent of the mean; 0 for fewer than two calls or a mean of 0.
    #[must_use]
    pub fn standard_error_percent(&self) -> f64 {
        if self.count < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let count = self.count as f64;
        let error_of_mean = (self.squares / (count - 1.0) / count).sqrt();
        100.0 * error_of_mean / self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_calls_and_sums_give_the_same_statistics() {
        let mut calls = CallStatistics::default();
        for (nanos, result) in [(10, 0), (20, -2), (30, -2)] {
            calls.add(nanos, result);
        }
        assert_eq!((calls.min, calls.max, calls.errors), (10, 30, 2));
        assert_eq!(calls.by_error.get(&2), Some(&2));
        assert!((calls.total() - 60.0).abs() < 1e-9);
        // The standard deviation is 10, the standard error 10/sqrt(3): 28.867% of the mean, 20.
        assert!((calls.standard_error_percent() - 28.867).abs() < 1e-2);
        let mut sums = CallStatistics {
            count: 3,
            ..CallStatistics::default()
        };
        sums.set_sums(60, 100 + 400 + 900);
        assert!((sums.total() - 60.0).abs() < 1e-9);
        assert!((sums.standard_error_percent() - 28.867).abs() < 1e-2);
    }

    #[test]
    fn merged_statistics_are_those_of_all_calls() {
        let times = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5];
        for split in 0..=times.len() {
            let (mut all, mut one, mut other) =
                <(CallStatistics, CallStatistics, CallStatistics)>::default();
            for (index, time) in times.into_iter().enumerate() {
                let result = if time == 1 { -4 } else { 0 };
                all.add(time, result);
                if index < split { &mut one } else { &mut other }.add(time, result);
            }
            one.merge(&other);
            assert_eq!((one.count, one.min, one.max), (all.count, all.min, all.max));
            assert_eq!(one.by_error, all.by_error);
            assert!((one.mean() - all.mean()).abs() < 1e-9);
            assert!((one.standard_error_percent() - all.standard_error_percent()).abs() < 1e-9);
        }
    }
}
