//! Counts of a recording (`stat record`), by interval.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rperf_wire::{Stat, StatRound, UserRecord};

use crate::{CounterCounts, CounterReading};

/// CPU and thread of a counter, as in [`CounterReading`].
type CpuAndThread = (Option<u32>, Option<u32>);

/// Collects the counts in a recording's records.
#[derive(Debug, Clone)]
pub struct RecordedCounts {
    /// Event index by counter id.
    events: BTreeMap<u64, usize>,
    /// By event: the readings of each counter.
    counters: Vec<BTreeMap<CpuAndThread, RecordedReadings>>,
    /// By event: its CPUs, if it is not counted on all CPUs.
    cpus_by_event: BTreeMap<usize, BTreeSet<u32>>,
    /// The CPUs of the CPU map; one `None` if it has no CPUs.
    cpus: Vec<Option<u32>>,
    /// The threads of the thread map. The item `None` is all threads.
    threads: Vec<Option<u32>>,
    /// The time from the start to the last STAT_ROUND record, which ended an interval.
    last_end: Duration,
}

/// The readings of a counter, totals since the start.
#[derive(Debug, Clone, Copy, Default)]
struct RecordedReadings {
    last: CounterCounts,
    /// The last reading before the last STAT_ROUND record.
    at_last_end: CounterCounts,
}

/// Counts of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalCounts {
    /// The time from the start to the interval's end.
    pub at: Duration,
    /// Duration of the interval; for totals, the time since the start.
    pub duration: Duration,
    /// Whether the readings are totals since the start; otherwise they are differences from the readings at the end of the
    /// previous interval.
    pub is_total: bool,
    /// The readings of each event.
    pub readings: Vec<Vec<CounterReading>>,
}

impl RecordedCounts {
    /// Creates a collector for events; `ids` has the counter ids of each event.
    #[must_use]
    pub fn new<'i>(ids: impl IntoIterator<Item = &'i [u64]>) -> Self {
        let mut events = BTreeMap::new();
        let mut number = 0;
        for ids in ids {
            events.extend(ids.iter().map(|id| (*id, number)));
            number += 1;
        }
        Self {
            events,
            counters: vec![BTreeMap::new(); number],
            cpus_by_event: BTreeMap::new(),
            cpus: vec![None],
            threads: vec![None],
            last_end: Duration::ZERO,
        }
    }

    /// Index of the event with this counter id.
    #[must_use]
    pub fn event(&self, id: u64) -> Option<usize> {
        self.events.get(&id).copied()
    }

    /// Sets the CPUs on which an event is counted, from an EVENT_UPDATE record.
    pub fn set_cpus(&mut self, event: usize, cpus: impl IntoIterator<Item = u32>) {
        self.cpus_by_event.insert(event, cpus.into_iter().collect());
    }

    /// Whether CPUs were counted instead of threads.
    #[must_use]
    pub fn is_per_cpu(&self) -> bool {
        self.cpus.iter().any(Option::is_some)
    }

    /// Processes the next record; returns the counts if it is a STAT_ROUND record.
    pub fn process(&mut self, record: &UserRecord<'_>) -> Option<IntervalCounts> {
        match record {
            UserRecord::CpuMap(map) => {
                let cpus: Vec<_> = map.cpus().into_iter().map(Some).collect();
                self.cpus = if cpus.is_empty() { vec![None] } else { cpus };
            }
            UserRecord::ThreadMap(map) => {
                // A process id with all bits set means any thread.
                let thread = |pid: u64| u32::try_from(pid).ok();
                self.threads = map.threads.iter().map(|entry| thread(entry.pid)).collect();
            }
            UserRecord::Stat(stat) => self.read(stat),
            UserRecord::StatRound(round) => return Some(self.round(round)),
            _ => {}
        }
        None
    }

    fn read(&mut self, stat: &Stat) {
        let event = self.event(stat.id);
        let Some(counters) = event.and_then(|event| self.counters.get_mut(event)) else {
            return;
        };
        let cpu = Some(stat.cpu).filter(|cpu| *cpu != u32::MAX);
        // STAT records have the index of the thread in the thread map. An index outside the map counts as `None`.
        let index = usize::try_from(stat.thread).ok();
        let thread = index.and_then(|index| *self.threads.get(index)?);
        let readings = counters.entry((cpu, thread)).or_default();
        readings.last = CounterCounts {
            value: stat.value,
            enabled: stat.enabled,
            running: stat.running,
        };
    }

    fn round(&mut self, round: &StatRound) -> IntervalCounts {
        const INTERVAL: u64 = 0;
        let at = Duration::from_nanos(round.time);
        let is_total = round.kind != INTERVAL;
        let expected = self.expected_counters();
        let mut readings = Vec::with_capacity(self.counters.len());
        for (event, counters) in self.counters.iter_mut().enumerate() {
            let event_cpus = self.cpus_by_event.get(&event);
            // Counters without a STAT record have a reading, too.
            for (cpu, thread) in &expected {
                let is_excluded = cpu.is_some_and(|cpu| {
                    event_cpus.is_some_and(|event_cpus| !event_cpus.contains(&cpu))
                });
                if !is_excluded {
                    counters.entry((*cpu, *thread)).or_default();
                }
            }
            let mut event_readings = Vec::with_capacity(counters.len());
            for ((cpu, thread), counter) in counters {
                let counts = match is_total {
                    true => counter.last,
                    false => counter.last.since(counter.at_last_end),
                };
                counter.at_last_end = counter.last;
                event_readings.push(CounterReading {
                    cpu: *cpu,
                    thread: *thread,
                    counts,
                });
            }
            readings.push(event_readings);
        }
        let began = match is_total {
            true => Duration::ZERO,
            false => self.last_end,
        };
        self.last_end = at;
        IntervalCounts {
            at,
            duration: at.saturating_sub(began),
            is_total,
            readings,
        }
    }

    /// The last readings of an event's counters, totals since the start, sorted as by [`RecordedCounts::sorted`]; none
    /// for an unknown event.
    #[must_use]
    pub fn totals(&self, event: usize) -> Vec<CounterReading> {
        let counters = self.counters.get(event).into_iter().flatten();
        let readings = counters.map(|((cpu, thread), counter)| CounterReading {
            cpu: *cpu,
            thread: *thread,
            counts: counter.last,
        });
        self.sorted(readings.collect())
    }

    /// Sorts readings by thread, in the order of the thread map, then by CPU. Threads that are not in the map are last.
    #[must_use]
    pub fn sorted(&self, mut readings: Vec<CounterReading>) -> Vec<CounterReading> {
        let position = |thread| self.threads.iter().position(|known| *known == thread);
        readings
            .sort_by_key(|reading| (position(reading.thread).unwrap_or(usize::MAX), reading.cpu));
        readings
    }

    /// The counters that have a reading even without a STAT record: all CPUs with the first thread, then the other threads with
    /// the first CPU. Not each CPU with each thread: either CPUs or threads were counted, so that one of the maps has one item.
    fn expected_counters(&self) -> Vec<CpuAndThread> {
        let first_cpu = self.cpus.first().copied().flatten();
        let first_thread = self.threads.first().copied().flatten();
        let on_cpus = self.cpus.iter().map(|cpu| (*cpu, first_thread));
        let in_threads = self.threads.iter().skip(1);
        let in_threads = in_threads.map(|thread| (first_cpu, *thread));
        on_cpus.chain(in_threads).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{CpuMap, ThreadMap, ThreadMapEntry};

    // Kinds of STAT_ROUND records.
    const INTERVAL: u64 = 0;
    const FINAL: u64 = 1;

    fn stat(id: u64, cpu: u32, thread: u32, value: u64) -> UserRecord<'static> {
        UserRecord::Stat(Stat {
            id,
            cpu,
            thread,
            value,
            enabled: 10 * value,
            running: 10 * value,
        })
    }

    fn end(kind: u64, time: u64) -> UserRecord<'static> {
        UserRecord::StatRound(StatRound { kind, time })
    }

    /// CPU, thread and value of each reading.
    fn values(readings: &[CounterReading]) -> Vec<(Option<u32>, Option<u32>, u64)> {
        let value = |reading: &CounterReading| (reading.cpu, reading.thread, reading.counts.value);
        readings.iter().map(value).collect()
    }

    #[test]
    fn intervals_are_differences_of_counts() {
        // Event 1 was never opened: it has no counter ids.
        let mut counts = RecordedCounts::new([&[5_u64, 6][..], &[][..], &[9][..]]);
        let list = UserRecord::CpuMap(CpuMap::List(vec![0, 2]));
        assert!(counts.process(&list).is_none() && counts.is_per_cpu());
        counts.set_cpus(2, [2]);
        for record in [
            stat(5, 0, 0, 7),
            stat(6, 2, 0, 8),
            // The id of no event.
            stat(99, 0, 0, 1),
            stat(9, 2, 0, 3),
        ] {
            assert!(counts.process(&record).is_none());
        }
        let first = counts.process(&end(INTERVAL, 100)).unwrap();
        assert_eq!(
            (first.duration, first.is_total),
            (Duration::from_nanos(100), false)
        );
        assert_eq!(
            values(&first.readings[0]),
            [(Some(0), None, 7), (Some(2), None, 8)]
        );
        assert_eq!(
            values(&first.readings[1]),
            [(Some(0), None, 0), (Some(2), None, 0)],
            "never opened"
        );
        assert_eq!(values(&first.readings[2]), [(Some(2), None, 3)]);
        counts.process(&stat(5, 0, 0, 10));
        let second = counts.process(&end(INTERVAL, 150)).unwrap();
        assert_eq!(second.duration, Duration::from_nanos(50));
        assert_eq!(
            values(&second.readings[0]),
            [(Some(0), None, 3), (Some(2), None, 0)]
        );
        assert_eq!(second.readings[0][0].counts.enabled, 30);
        assert_eq!(
            values(&counts.totals(0)),
            [(Some(0), None, 10), (Some(2), None, 8)]
        );
        assert_eq!(counts.totals(7), []);
        let last = counts.process(&end(FINAL, 200)).unwrap();
        assert_eq!(last.duration, Duration::from_nanos(200));
        assert_eq!(values(&last.readings[0])[0].2, 10);
    }

    #[test]
    fn threads_are_named_by_the_thread_map() {
        let mut counts = RecordedCounts::new([&[1_u64, 2][..]]);
        let entry = |pid| ThreadMapEntry {
            pid,
            comm: Vec::new(),
        };
        let threads = vec![entry(70), entry(80)];
        counts.process(&UserRecord::ThreadMap(ThreadMap { threads }));
        let any_cpu = u16::MAX;
        counts.process(&UserRecord::CpuMap(CpuMap::List(vec![any_cpu])));
        assert!(!counts.is_per_cpu());
        counts.process(&stat(2, u32::MAX, 1, 4));
        // The thread map has no index 77.
        counts.process(&stat(1, u32::MAX, 77, 5));
        let round = counts.process(&end(FINAL, 1)).unwrap();
        assert_eq!(
            values(&round.readings[0]),
            [(None, None, 5), (None, Some(70), 0), (None, Some(80), 4)],
            "an index outside the thread map is no thread"
        );
        assert_eq!(
            values(&counts.totals(0)),
            [(None, Some(70), 0), (None, Some(80), 4), (None, None, 5)]
        );
    }
}
