//! Event counts of each thread, from READ records.

use rperf_perfdata::EventDesc;
use rperf_replay::{BadRecord, DecodeErrors, EventIndex, Replay};
use rperf_wire::{Read, ReadFormat, ReadValues, Record, RecordKind};
use rustc_hash::FxHashMap;

/// Counts of a recording's threads (`record -s`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadCounts {
    /// The events that have READ records, in the order of their first READ records: name, and index among the recorded events.
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
        let Some(value) = value_of(read, recorded_events.get(event.0 as usize)) else {
            return;
        };
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
            *count = count.saturating_add(value);
        }
    }
}

/// The value of `event` in a READ record; `None` if it is not there. With [`ReadFormat::GROUP`], a record has the values of all
/// events of the group, and each of these events has records of its own.
fn value_of(read: &Read<'_>, event: Option<&EventDesc>) -> Option<u64> {
    let event = event?;
    let format = event.attr.read_format;
    if !format.contains(ReadFormat::GROUP) {
        return Some(read.words.get(0).unwrap_or_default());
    }
    let values = ReadValues::new(format, read.words).values();
    let own = values.iter().find(|value| {
        let id = value.id;
        id.is_some_and(|id| event.ids.contains(&id))
    });
    own.map(|own| own.value)
}

#[cfg(test)]
mod tests {
    use rperf_wire::{Attr, Endian, U64s};

    use super::*;

    #[test]
    fn each_event_of_a_group_has_its_own_value() {
        let format = ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED;
        let attr = Attr {
            read_format: format,
            ..Attr::default()
        };
        let events = [[10, 11], [20, 21], [30, 31]];
        let events = events.map(|ids| EventDesc::new(attr.clone(), ids.to_vec()));
        let mut counter = ThreadCounter::default();
        let mut add = |event, words: [u64; 6]| {
            let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let words = U64s::new(&words, Endian::Little);
            let (pid, tid) = (7, 8);
            counter.add(&Read { pid, tid, words }, EventIndex(event), &events);
        };
        // Number of members, time, and a value with its id for each member.
        add(0, [2, 99, 500, 11, 600, 21]);
        add(1, [2, 99, 500, 11, 600, 21]);
        add(1, [2, 99, 5, 10, 6, 20]);
        // A record without the event's own value.
        add(2, [2, 99, 5, 10, 6, 20]);
        let ThreadCounts {
            events, threads, ..
        } = counter.counted;
        assert_eq!(events.len(), 2);
        let counts: Vec<&[u64]> = threads.iter().map(|thread| &*thread.counts).collect();
        assert_eq!(counts, [[500, 606]]);
    }
}
