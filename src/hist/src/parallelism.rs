//! Number of running threads over time.

use rperf_replay::Order;

/// Number of concurrently running threads over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parallelism {
    /// Positions in the order of records, ascending, each with the number of threads from there on.
    steps: Vec<(Order, u32)>,
}

impl Parallelism {
    /// Creates it from `steps`: positions in the order of records, ascending, each with the number of threads from there on.
    #[must_use]
    pub fn new(steps: Vec<(Order, u32)>) -> Self {
        Self { steps }
    }

    /// The number of threads at `order`; at least 1, since the sampled thread runs.
    #[must_use]
    pub fn at(&self, order: Order) -> u32 {
        let begun = self.steps.partition_point(|(from, _)| *from <= order);
        let step = begun.checked_sub(1).and_then(|last| self.steps.get(last));
        step.map_or(1, |(_, threads)| (*threads).max(1))
    }

    /// The maximum number of threads; at least 1.
    #[must_use]
    pub fn maximum(&self) -> u32 {
        let threads = self.steps.iter().map(|(_, threads)| *threads);
        threads.max().unwrap_or_default().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_until_the_next() {
        let order = |time| Order { time, position: 0 };
        let steps = [(10, 1), (20, 3), (30, 0)];
        let steps = steps.map(|(time, threads)| (order(time), threads));
        let parallelism = Parallelism::new(steps.to_vec());
        let counts = [5, 10, 25, 30, 99].map(|time| parallelism.at(order(time)));
        assert_eq!(counts, [1, 1, 3, 1, 1]);
        assert_eq!(parallelism.maximum(), 3);
        assert_eq!(Parallelism::default().maximum(), 1);
    }
}
