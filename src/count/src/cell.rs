//! One reading of one counter.

/// What a counter said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events while it was on a counter.
    pub value: u64,
    /// Nanoseconds it was enabled.
    pub enabled: u64,
    /// Nanoseconds it was on a counter.
    pub running: u64,
}

impl Counts {
    /// What came since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(earlier.value),
            enabled: self.enabled.saturating_sub(earlier.enabled),
            running: self.running.saturating_sub(earlier.running),
        }
    }

    /// The events of all the time it was enabled, as far as can be told from the time it was on a counter. `None`
    /// if it never was.
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

/// What a counter said, and where it counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The CPU; `None` for a counter that followed its thread over all of them.
    pub cpu: Option<u32>,
    /// The thread; `None` for a counter of whatever ran on its CPU.
    pub thread: Option<u32>,
    /// The reading.
    pub counts: Counts,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(value: u64, enabled: u64, running: u64) -> Counts {
        Counts {
            value,
            enabled,
            running,
        }
    }

    #[test]
    fn what_shared_a_counter_is_scaled_and_what_never_ran_has_no_number() {
        assert_eq!(counts(100, 10, 10).scaled(), Some(100));
        assert_eq!(counts(100, 10, 4).scaled(), Some(250));
        assert_eq!(counts(1, 3, 2).scaled(), Some(2), "rounded");
        assert_eq!(counts(0, 10, 0).scaled(), None);
        assert_eq!(counts(0, 10, 10).scaled(), Some(0), "a true nought");
        assert_eq!(counts(u64::MAX, u64::MAX, 1).scaled(), Some(u64::MAX));
    }

    #[test]
    fn an_interval_is_what_came_since() {
        let since = counts(15, 30, 20).since(counts(10, 20, 15));
        assert_eq!(since, counts(5, 10, 5));
    }
}
