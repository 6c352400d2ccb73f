//! Event counts of each thread, from READ records.

use rperf_perfdata::EventDesc;
use rperf_replay::{BadRecord, DecodeErrors, EventIndex, Replay};
use rperf_wire::{Read, Record, RecordKind};
use rustc_hash::FxHashMap;

/// Counts of a recording's threads (`record -s`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadCounts {
    /// The events that have READ records, in the order of their first ones: name, and index in the recording.
    pub events: Vec<(String, usize)>,
    /// The threads, in the order of their first READ records.
    pub threads: Vec<ThreadCount>,
    /// READ records that could not be decoded.
    pub bad: DecodeErrors,
}

/// The counts of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadCount {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// One count per event of [`ThreadCounts::events`].
    pub counts: Vec<u64>,
}

impl ThreadCounts {
    /// Returns the counts of all threads that have READ records. The records of a thread for the same event are added up; records
    /// without a known event are skipped.
    #[must_use]
    pub fn of_recording(replay: &Replay<'_>) -> Self {
        let mut counter = ThreadCounter::default();
        for record in replay.non_samples(&[RecordKind::READ]) {
            match (
                record.event,
                Record::decode(&record.raw, replay.data().endian()),
            ) {
                (Some(event), Ok(Record::Read(read))) => {
                    counter.add(&read, event, replay.data().events());
                }
                (_, Ok(_)) => {}
                (_, Err(error)) => counter.counted.bad.add(BadRecord {
                    offset: record.order.position,
                    kind: record.raw.kind,
                    error,
                }),
            }
        }
        let mut counted = counter.counted;
        for thread in &mut counted.threads {
            thread.counts.resize(counted.events.len(), 0);
        }
        counted
    }
}

#[derive(Default)]
struct ThreadCounter {
    counted: ThreadCounts,
    /// The index in [`ThreadCounts::events`], by event.
    columns: FxHashMap<EventIndex, usize>,
    /// The index in [`ThreadCounts::threads`], by process and thread.
    rows: FxHashMap<(u32, u32), usize>,
}

impl ThreadCounter {
    fn add(&mut self, read: &Read<'_>, event: EventIndex, recorded_events: &[EventDesc]) {
        let ThreadCounts {
            events, threads, ..
        } = &mut self.counted;
        let column = *self.columns.entry(event).or_insert_with(|| {
            let index = event.0 as usize;
            let name = recorded_events.get(index).map(|event| event.name.clone());
            events.push((name.unwrap_or_default(), index));
            events.len() - 1
        });
        let (pid, tid) = (read.pid, read.tid);
        let row = *self.rows.entry((pid, tid)).or_insert_with(|| {
            let counts = Vec::new();
            threads.push(ThreadCount { pid, tid, counts });
            threads.len() - 1
        });
        let Some(thread) = threads.get_mut(row) else {
            return;
        };
        if thread.counts.len() <= column {
            thread.counts.resize(column + 1, 0);
        }
        if let Some(count) = thread.counts.get_mut(column) {
            // The value is the first word if the event has no PERF_FORMAT_GROUP.
            *count = count.saturating_add(read.words.get(0).unwrap_or_default());
        }
    }
}
