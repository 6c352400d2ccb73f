//! A reading of one counter.

/// Values read from a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterCounts {
    /// The count, not scaled.
    pub value: u64,
    /// Nanoseconds that the event was enabled.
    pub enabled: u64,
    /// Nanoseconds that the event was counted, because it was on a counter of its PMU.
    pub running: u64,
}

impl CounterCounts {
    /// The increase since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(earlier.value),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }

    /// The count extrapolated to the time enabled, rounded. `None` if the event was never on a counter of its PMU.
    #[must_use]
    pub fn scaled(self) -> Option<u64> {
        if self.running == 0 {
            return None;
        }
        if self.running >= self.enabled {
            return Some(self.value);
        }
        let product = u128::from(self.value) * u128::from(self.enabled);
        let rounded = (product + u128::from(self.running) / 2) / u128::from(self.running);
        Some(u64::try_from(rounded).unwrap_or(u64::MAX))
    }
}

/// The values read from a counter, with its CPU and thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterReading {
    /// The CPU; `None` for a counter of a thread on all CPUs.
    pub cpu: Option<u32>,
    /// The thread; `None` for a counter of all tasks on its CPU.
    pub thread: Option<u32>,
    /// The values.
    pub counts: CounterCounts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(value: u64, enabled: u64, running: u64) -> CounterCounts {
        CounterCounts {
            value,
            enabled,
            running,
        }
    }

    #[test]
    fn multiplexed_counts_are_scaled_and_unscheduled_ones_missing() {
        assert_eq!(counts(100, 10, 10).scaled(), Some(100));
        assert_eq!(counts(100, 10, 4).scaled(), Some(250));
        assert_eq!(counts(1, 3, 2).scaled(), Some(2), "rounded");
        assert_eq!(counts(0, 10, 0).scaled(), None);
        assert_eq!(counts(0, 10, 10).scaled(), Some(0), "a count of 0");
        assert_eq!(counts(u64::MAX, u64::MAX, 1).scaled(), Some(u64::MAX));
    }

    #[test]
    fn an_interval_is_the_difference_of_counts() {
        let since = counts(15, 30, 20).since(counts(10, 20, 15));
        assert_eq!(since, counts(5, 10, 5));
    }
}
