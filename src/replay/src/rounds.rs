//! The order of records across rings.
//!
//! A recorder drains one ring after the other, so a file is only sorted within the records of a
//! ring. A FINISHED_ROUND record after a pass over all rings means that everything up to the
//! maximum time seen in the *previous* pass is complete. perf delivers records accordingly:
//!
//! ```text
//! ring 0: 1 4 | ring 1: 2 3 | FINISHED_ROUND | ring 0: 6 | ring 1: 5 8 | FINISHED_ROUND
//!                             delivers none,               delivers up to 4,
//!                             next limit 4                 next limit 8
//! ```

use crate::Order;

/// Tracks the flush limit of a file or a live stream.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    /// Time up to which records have been delivered, or, just after a round has ended, can be delivered.
    flushed: u64,
    /// Value of `flushed` after the end of the current round.
    next: u64,
    /// Highest time so far.
    highest: u64,
    /// Number of records that were older than `flushed` when they were read.
    late: u64,
}

impl Rounds {
    /// State at the start of a recording.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The flush limit: time up to which records have been delivered, or, just after a round has ended, can be delivered.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.flushed
    }

    /// Number of records whose time was before the limit when they were read.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Counts a record that was read, and returns its place in the order: call it once for each record. `position` is its offset
    /// in the file or stream, by which records of the same time are ordered. A record without a time gets the current limit
    /// as its time.
    #[inline]
    pub fn add_record(&mut self, time: Option<u64>, position: u64) -> Order {
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

    /// Counts a range of records within a round: `highest` is the highest of their times, `late` the number of late ones.
    pub(crate) fn add_range(&mut self, highest: u64, late: u64) {
        self.highest = self.highest.max(highest);
        self.late += late;
    }

    /// Raises the limit to the highest time: at the end of a stream, or if too many records are waiting.
    pub fn finish_all(&mut self) {
        self.next = self.highest;
        self.flushed = self.highest;
    }

    /// Handles a FINISHED_ROUND record.
    pub fn finish_round(&mut self) {
        self.flushed = self.next;
        self.next = self.highest;
    }
}

/// Removes the items up to the time `limit` from `waiting`, and returns them in order; `order_of` returns
/// an item's place in the order.
pub fn take_up_to<T>(waiting: &mut Vec<T>, limit: u64, order_of: impl Fn(&T) -> Order) -> Vec<T> {
    waiting.sort_by_key(&order_of);
    let count = waiting.partition_point(|item| order_of(item).time <= limit);
    let rest = waiting.split_off(count);
    std::mem::replace(waiting, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_delivers_records_up_to_the_previous_round() {
        let mut rounds = Rounds::new();
        for time in [1, 4, 2, 3] {
            rounds.add_record(Some(time), 0);
        }
        rounds.finish_round();
        assert_eq!(rounds.limit(), 0);
        rounds.add_record(Some(8), 0);
        rounds.finish_round();
        assert_eq!(rounds.limit(), 4);
        assert_eq!(rounds.late(), 0);
        rounds.add_record(Some(3), 0);
        assert_eq!(rounds.late(), 1);
    }

    #[test]
    fn records_without_time_are_between_delivered_and_waiting_ones() {
        let mut rounds = Rounds::new();
        let delivered = rounds.add_record(Some(5), 10);
        rounds.finish_round();
        rounds.finish_round();
        let waiting = rounds.add_record(Some(6), 20);
        let timeless = rounds.add_record(None, 30);
        assert!(delivered < timeless && timeless < waiting);
    }
}
