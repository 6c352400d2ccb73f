//! Samples shared by several events: with `:S` a sample of a group's leader contains the values of
//! all members.
//!
//! As in perf, each member gets a sample whose period is the increase of its counter since the
//! previous sample in order of time; members without an increase get none. The order of time differs from
//! file order, so the first pass over the file (pass 1) computes the increases and keeps them, some bytes per member and sample.

use rperf_wire::ReadValues;
use rustc_hash::FxHashMap;

use crate::{EventIndex, Order, Sample};

/// One event's share of a sample with counter values. A sample of that event is derived from each share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupSample {
    pub(crate) event: EventIndex,
    /// Increase of the counter.
    pub(crate) period: u64,
}

/// The shares of all samples with counter values.
#[derive(Debug, Default)]
pub(crate) struct GroupSamples {
    /// File offset ([`Order::position`]) of each sample with counter values, ascending, and the end index of its shares.
    samples: Vec<(u64, usize)>,
    shares: Vec<GroupSample>,
}

impl GroupSamples {
    /// Whether any sample has values.
    pub(crate) fn any(&self) -> bool {
        !self.samples.is_empty()
    }

    /// The shares of the sample at a file offset; `None` for a sample without values, which belongs
    /// to its own event only.
    #[inline]
    fn of(&self, position: u64) -> Option<&[GroupSample]> {
        if self.samples.is_empty() {
            return None;
        }
        let index = self
            .samples
            .binary_search_by_key(&position, |(offset, _)| *offset)
            .ok()?;
        let start = match index.checked_sub(1) {
            Some(before) => self.samples.get(before)?.1,
            None => 0,
        };
        self.shares.get(start..self.samples.get(index)?.1)
    }

    /// Calls `each` with the sample if it has no values, otherwise with every sample derived from it, if any.
    #[inline]
    pub(crate) fn deliver(&self, sample: &Sample<'_>, mut each: impl FnMut(&Sample<'_>)) {
        let Some(shares) = self.of(sample.order.position) else {
            return each(sample);
        };
        let mut sample = sample.clone();
        for share in shares {
            sample.event = share.event;
            sample.period = share.period;
            each(&sample);
        }
    }
}

/// The last value of each counter, by id.
pub(crate) type LastValues = FxHashMap<u64, u64>;

/// Counter values in file order: of all samples of a file, collected by pass 1, or of the samples of a stream that are delivered
/// next.
#[derive(Debug, Default)]
pub(crate) struct GroupCounts {
    /// Time and file offset of each sample, and the end index of its values.
    samples: Vec<(Order, usize)>,
    /// Counter id, event and value; [`GroupCounts::finish`] replaces the value by its increase.
    values: Vec<(u64, EventIndex, u64)>,
}

impl GroupCounts {
    /// Adds the values of a sample; those with unknown ids are skipped, and their number returned.
    pub(crate) fn add(
        &mut self,
        order: Order,
        read: &ReadValues<'_>,
        event_of: impl Fn(u64) -> Option<EventIndex>,
    ) -> u64 {
        let mut unknown = 0;
        for value in read.values() {
            let id = value.id.unwrap_or_default();
            match event_of(id) {
                Some(event) => self.values.push((id, event, value.value)),
                None => unknown += 1,
            }
        }
        self.samples.push((order, self.values.len()));
        unknown
    }

    /// Computes the increases of each counter. A stream is processed part by part: `last` has the last values of counters in the
    /// earlier parts, and gets those of this part. For a file it is empty.
    pub(crate) fn finish(mut self, last: &mut LastValues) -> GroupSamples {
        let mut by_time: Vec<usize> = (0..self.samples.len()).collect();
        by_time.sort_by_key(|index| self.samples.get(*index).map(|(order, _)| *order));
        for index in by_time {
            let range = self.range(index);
            for (id, _, value) in self.values.get_mut(range).unwrap_or_default() {
                let before = last.insert(*id, *value).unwrap_or_default();
                *value = value.wrapping_sub(before);
            }
        }
        let mut derived = GroupSamples::default();
        for (index, (order, _)) in self.samples.iter().enumerate() {
            let values = self.values.get(self.range(index)).unwrap_or_default();
            let increases = values.iter().filter(|(.., increase)| *increase > 0);
            derived
                .shares
                .extend(increases.map(|(_, event, increase)| GroupSample {
                    event: *event,
                    period: *increase,
                }));
            let end = derived.shares.len();
            derived.samples.push((order.position, end));
        }
        derived
    }

    fn range(&self, index: usize) -> std::ops::Range<usize> {
        let end = |index: usize| self.samples.get(index).map_or(0, |(_, end)| *end);
        index.checked_sub(1).map_or(0, end)..end(index)
    }
}

impl GroupSamples {
    /// Adds the number of derived samples of each event to `counts`.
    pub(crate) fn add_counts(&self, counts: &mut [u64]) {
        for share in &self.shares {
            if let Some(count) = counts.get_mut(share.event.0 as usize) {
                *count += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of samples, each given by its time and the values by counter id. The last digit of an id is its event.
    fn shares(samples: &[(u64, &[(u64, u64)])]) -> GroupSamples {
        let mut counts = GroupCounts::default();
        for (position, (time, read)) in (0..).zip(samples) {
            for (id, value) in *read {
                let event = EventIndex(u32::try_from(*id % 10).unwrap());
                counts.values.push((*id, event, *value));
            }
            let order = Order {
                time: *time,
                position,
            };
            counts.samples.push((order, counts.values.len()));
        }
        counts.finish(&mut LastValues::default())
    }

    /// Event and period of each share of the sample at `position`.
    fn event_periods(shares: &GroupSamples, position: u64) -> Option<Vec<(u32, u64)>> {
        let event_period = |share: &GroupSample| (share.event.0, share.period);
        Some(shares.of(position)?.iter().map(event_period).collect())
    }

    #[test]
    fn increases_follow_time_and_not_file_order() {
        // Event 1 has the id 1 on one CPU and 11 on another.
        let shares = shares(&[
            (20, &[(1, 150), (2, 7)]),
            (10, &[(1, 100), (2, 7)]),
            (15, &[(11, 5)]),
        ]);
        assert_eq!(event_periods(&shares, 0), Some(vec![(1, 50)]));
        assert_eq!(event_periods(&shares, 1), Some(vec![(1, 100), (2, 7)]));
        assert_eq!(event_periods(&shares, 2), Some(vec![(1, 5)]));
        assert_eq!(event_periods(&shares, 3), None);
        let mut counts = [0; 3];
        shares.add_counts(&mut counts);
        assert_eq!(counts, [0, 3, 1]);
    }

    #[test]
    fn a_sample_without_values_has_no_shares() {
        assert_eq!(event_periods(&GroupSamples::default(), 0), None);
    }
}
