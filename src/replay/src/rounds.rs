//! The order of records, as their recorder meant it.
//!
//! A recorder empties one ring after the other, so a file is sorted only within each ring's run. The
//! FINISHED_ROUND behind a tour over all rings says: what the tour *before* this one had seen is
//! complete. perf delivers records on that word:
//!
//! ```text
//! ring 0: 1 4 | ring 1: 2 3 | FINISHED_ROUND | ring 0: 6 | ring 1: 5 8 | FINISHED_ROUND
//!                             delivers none,               delivers up to 4,
//!                             next limit 4                 next limit 8
//! ```

use crate::Order;

/// Follows the flush limit through a file or a live stream.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    flushed: u64,
    next: u64,
    highest: u64,
    late: u64,
}

impl Rounds {
    /// At the start of a recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Up to which time records have been delivered.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.flushed
    }

    /// Records that came after later ones had been delivered.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Place of a record. Without a time it comes before everything not delivered yet.
    #[inline]
    pub fn order(&mut self, time: Option<u64>, position: u64) -> Order {
        let Some(time) = time else {
            return Order {
                time: self.flushed,
                position,
            };
        };
        self.highest = self.highest.max(time);
        self.late += u64::from(time < self.flushed);
        Order { time, position }
    }

    /// Delivers everything: the end of a stream, or more than should wait.
    pub fn finish_all(&mut self) {
        self.next = self.highest;
        self.flushed = self.highest;
    }

    /// A FINISHED_ROUND record.
    pub fn finish_round(&mut self) {
        self.flushed = self.next;
        self.next = self.highest;
    }
}

/// Takes those out of `waiting` that come up to `limit`, in their order; `of` tells the place of each.
pub(crate) fn take_up_to<T>(waiting: &mut Vec<T>, limit: u64, of: impl Fn(&T) -> Order) -> Vec<T> {
    waiting.sort_by_key(&of);
    let count = waiting.partition_point(|one| of(one).time <= limit);
    let rest = waiting.split_off(count);
    std::mem::replace(waiting, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_delivers_what_the_round_before_it_had_seen() {
        let mut rounds = Rounds::new();
        for time in [1, 4, 2, 3] {
            rounds.order(Some(time), 0);
        }
        rounds.finish_round();
        assert_eq!(rounds.limit(), 0);
        rounds.order(Some(8), 0);
        rounds.finish_round();
        assert_eq!(rounds.limit(), 4);
        assert_eq!(rounds.late(), 0);
        rounds.order(Some(3), 0);
        assert_eq!(rounds.late(), 1);
    }

    #[test]
    fn records_without_time_come_before_what_waits_and_after_what_went() {
        let mut rounds = Rounds::new();
        let went = rounds.order(Some(5), 10);
        rounds.finish_round();
        rounds.finish_round();
        let waits = rounds.order(Some(6), 20);
        let timeless = rounds.order(None, 30);
        assert!(went < timeless && timeless < waits);
    }
}
