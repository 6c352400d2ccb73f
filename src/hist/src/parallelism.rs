//! How many threads ran at a time.

use rperf_replay::Order;

/// Threads that ran side by side, by time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parallelism {
    /// From each place on so many, by rising place.
    steps: Vec<(Order, u32)>,
}

impl Parallelism {
    /// From each of these places, which rise, so many threads ran.
    #[must_use]
    pub fn new(steps: Vec<(Order, u32)>) -> Self {
        Self { steps }
    }

    /// How many ran at a place; at least the one that was sampled there.
    #[must_use]
    pub fn at(&self, order: Order) -> u32 {
        let before = self.steps.partition_point(|(from, _)| *from <= order);
        let step = before.checked_sub(1).and_then(|last| self.steps.get(last));
        step.map_or(1, |(_, threads)| (*threads).max(1))
    }

    /// The most that ever ran.
    #[must_use]
    pub fn most(&self) -> u32 {
        let threads = self.steps.iter().map(|(_, threads)| *threads);
        threads.max().unwrap_or_default().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_until_the_next() {
        let at = |time| Order { time, position: 0 };
        let steps = [(10, 1), (20, 3), (30, 0)];
        let steps = steps.map(|(time, threads)| (at(time), threads));
        let parallelism = Parallelism::new(steps.to_vec());
        let seen = [5, 10, 25, 30, 99].map(|time| parallelism.at(at(time)));
        assert_eq!(seen, [1, 1, 3, 1, 1]);
        assert_eq!(parallelism.most(), 3);
        assert_eq!(Parallelism::default().most(), 1);
    }
}
