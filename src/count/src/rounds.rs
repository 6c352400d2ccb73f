//! Counts out of a recording (`stat record`), put together round by round.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rperf_wire::{Stat, StatRound, UserRecord};

use crate::{Cell, Counts};

/// Where a counter counted: its CPU and its thread, as in [`Cell`].
type Place = (Option<u32>, Option<u32>);

/// The counts of a recording's events, as its records tell of them.
#[derive(Debug, Clone)]
pub struct Rounds {
    /// Events by the ids of their counters.
    events: BTreeMap<u64, usize>,
    /// By event what each counter said last, and before.
    cells: Vec<BTreeMap<Place, (Counts, Counts)>>,
    /// The CPUs of each event that is not on all.
    own_cpus: BTreeMap<usize, BTreeSet<u32>>,
    cpus: Vec<Option<u32>>,
    threads: Vec<Option<u32>>,
    last: Duration,
}

/// What was counted up to a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// When that was, from the start on.
    pub at: Duration,
    /// How long it was counted.
    pub took: Duration,
    /// Whether it is everything, or only what came since the round before.
    pub is_whole: bool,
    /// The readings of each event.
    pub readings: Vec<Vec<Cell>>,
}

impl Rounds {
    /// The events by the ids of their counters.
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
            cells: vec![BTreeMap::new(); number],
            own_cpus: BTreeMap::new(),
            cpus: vec![None],
            threads: vec![None],
            last: Duration::ZERO,
        }
    }

    /// The event that has a counter of this id.
    #[must_use]
    pub fn event(&self, id: u64) -> Option<usize> {
        self.events.get(&id).copied()
    }

    /// The CPUs that count for all (EVENT_UPDATE).
    pub fn set_cpus(&mut self, event: usize, cpus: impl IntoIterator<Item = u32>) {
        self.own_cpus.insert(event, cpus.into_iter().collect());
    }

    /// Whether whole CPUs were observed.
    #[must_use]
    pub fn is_of_cpus(&self) -> bool {
        self.cpus.iter().any(Option::is_some)
    }

    /// Takes the next record; what was counted, where it ends a round.
    pub fn take(&mut self, record: &UserRecord<'_>) -> Option<Round> {
        match record {
            UserRecord::CpuMap(map) => {
                let cpus: Vec<_> = map.cpus().into_iter().map(Some).collect();
                self.cpus = if cpus.is_empty() { vec![None] } else { cpus };
            }
            UserRecord::ThreadMap(map) => {
                // All bits are set for any.
                let thread = |pid: u64| u32::try_from(pid).ok();
                self.threads = map
                    .threads
                    .iter()
                    .map(|thread_of| thread(thread_of.pid))
                    .collect();
            }
            UserRecord::Stat(stat) => self.read(stat),
            UserRecord::StatRound(round) => return Some(self.round(round)),
            _ => {}
        }
        None
    }

    fn read(&mut self, stat: &Stat) {
        let event = self.event(stat.id);
        let Some(cells) = event.and_then(|event| self.cells.get_mut(event)) else {
            return;
        };
        let cpu = Some(stat.cpu).filter(|cpu| *cpu != u32::MAX);
        let thread = usize::try_from(stat.thread).ok();
        let thread = thread.and_then(|thread| *self.threads.get(thread)?);
        let (now, _) = cells.entry((cpu, thread)).or_default();
        *now = Counts {
            value: stat.value,
            enabled: stat.enabled,
            running: stat.running,
        };
    }

    fn round(&mut self, round: &StatRound) -> Round {
        const INTERVAL: u64 = 0;
        let at = Duration::from_nanos(round.time);
        let is_whole = round.kind != INTERVAL;
        let places = self.places();
        let mut readings = Vec::with_capacity(self.cells.len());
        for (event, cells) in self.cells.iter_mut().enumerate() {
            let own = self.own_cpus.get(&event);
            // What was never read has a row, too.
            for (cpu, thread) in &places {
                let elsewhere = cpu.is_some_and(|cpu| own.is_some_and(|own| !own.contains(&cpu)));
                if !elsewhere {
                    cells.entry((*cpu, *thread)).or_default();
                }
            }
            let cell = |(place, (now, before)): (&Place, &mut (Counts, Counts))| {
                let counts = if is_whole { *now } else { now.since(*before) };
                *before = *now;
                Cell {
                    cpu: place.0,
                    thread: place.1,
                    counts,
                }
            };
            readings.push(cells.iter_mut().map(cell).collect());
        }
        let began = if is_whole { Duration::ZERO } else { self.last };
        self.last = at;
        Round {
            at,
            took: at.saturating_sub(began),
            is_whole,
            readings,
        }
    }

    /// Where events are, if nothing says otherwise: on every CPU, and in every thread.
    fn places(&self) -> Vec<Place> {
        let (cpu, thread) = (self.cpus.first(), self.threads.first());
        let on_cpus = self
            .cpus
            .iter()
            .map(|cpu| (*cpu, thread.copied().flatten()));
        let in_threads = self.threads.iter().skip(1);
        let in_threads = in_threads.map(|thread| (cpu.copied().flatten(), *thread));
        on_cpus.chain(in_threads).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{CpuMap, ThreadMap, ThreadMapEntry};

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

    /// CPU, thread and value of each cell.
    fn cells(cells: &[Cell]) -> Vec<(Option<u32>, Option<u32>, u64)> {
        let cell = |cell: &Cell| (cell.cpu, cell.thread, cell.counts.value);
        cells.iter().map(cell).collect()
    }

    #[test]
    fn intervals_are_what_came_since_the_last() {
        let mut rounds = Rounds::new([&[5_u64, 6][..], &[][..], &[9][..]]);
        let list = UserRecord::CpuMap(CpuMap::List(vec![0, 2]));
        assert!(rounds.take(&list).is_none() && rounds.is_of_cpus());
        rounds.set_cpus(2, [2]);
        for record in [
            stat(5, 0, 0, 7),
            stat(6, 2, 0, 8),
            stat(99, 0, 0, 1),
            stat(9, 2, 0, 3),
        ] {
            assert!(rounds.take(&record).is_none());
        }
        let first = rounds.take(&end(0, 100)).unwrap();
        assert_eq!(
            (first.took, first.is_whole),
            (Duration::from_nanos(100), false)
        );
        assert_eq!(
            cells(&first.readings[0]),
            [(Some(0), None, 7), (Some(2), None, 8)]
        );
        assert_eq!(
            cells(&first.readings[1]),
            [(Some(0), None, 0), (Some(2), None, 0)],
            "never opened"
        );
        assert_eq!(cells(&first.readings[2]), [(Some(2), None, 3)]);
        rounds.take(&stat(5, 0, 0, 10));
        let second = rounds.take(&end(0, 150)).unwrap();
        assert_eq!(second.took, Duration::from_nanos(50));
        assert_eq!(
            cells(&second.readings[0]),
            [(Some(0), None, 3), (Some(2), None, 0)]
        );
        assert_eq!(second.readings[0][0].counts.enabled, 30);
        let whole = rounds.take(&end(1, 200)).unwrap();
        assert_eq!(whole.took, Duration::from_nanos(200));
        assert_eq!(cells(&whole.readings[0])[0].2, 10);
    }

    #[test]
    fn threads_are_those_of_their_map() {
        let mut rounds = Rounds::new([&[1_u64, 2][..]]);
        let entry = |pid| ThreadMapEntry {
            pid,
            comm: Vec::new(),
        };
        let threads = vec![entry(70), entry(80)];
        rounds.take(&UserRecord::ThreadMap(ThreadMap { threads }));
        rounds.take(&UserRecord::CpuMap(CpuMap::List(vec![u16::MAX])));
        assert!(!rounds.is_of_cpus());
        rounds.take(&stat(2, u32::MAX, 1, 4));
        rounds.take(&stat(1, u32::MAX, 77, 5));
        let round = rounds.take(&end(1, 1)).unwrap();
        assert_eq!(
            cells(&round.readings[0]),
            [(None, None, 5), (None, Some(70), 0), (None, Some(80), 4)],
            "a thread that nobody told of is none"
        );
    }

    #[test]
    fn aggregations_have_perfs_numbers() {
        use crate::Aggregation;
        for by in [Aggregation::Cpu, Aggregation::Thread, Aggregation::Node] {
            assert_eq!(Aggregation::of_number(by.number()), by);
        }
        assert_eq!(Aggregation::Cluster.number(), 1);
        assert_eq!(Aggregation::of_number(6), Aggregation::Global);
    }
}
