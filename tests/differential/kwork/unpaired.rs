//! Hides the kwork events that have no counterpart on the same CPU: their sample ID is replaced by the ID of an event that both
//! tools ignore.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::Range;

// Bits of `sample_type`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// The fields of a sample before the raw data, in their order, if neither counts (`PERF_SAMPLE_READ`) nor callchains are
/// recorded. Each has 8 bytes.
const FIELDS: [u64; 9] = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
/// `PERF_RECORD_SAMPLE`.
const SAMPLE: u32 = 9;

/// A step in the processing of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Raise,
    Entry,
    Exit,
}

/// A tracepoint of work.
#[derive(Debug, Clone, Copy)]
struct Tracepoint {
    /// Its folder in tracefs.
    folder: &'static str,
    step: Step,
    /// The size of the number that identifies the work, in bytes: 8 for the address of a work item.
    size: usize,
}

const fn tracepoint(folder: &'static str, step: Step, size: usize) -> Tracepoint {
    Tracepoint { folder, step, size }
}

const TRACEPOINTS: [Tracepoint; 8] = [
    tracepoint("irq/irq_handler_entry", Step::Entry, 4),
    tracepoint("irq/irq_handler_exit", Step::Exit, 4),
    tracepoint("irq/softirq_raise", Step::Raise, 4),
    tracepoint("irq/softirq_entry", Step::Entry, 4),
    tracepoint("irq/softirq_exit", Step::Exit, 4),
    tracepoint("workqueue/workqueue_activate_work", Step::Raise, 8),
    tracepoint("workqueue/workqueue_execute_start", Step::Entry, 8),
    tracepoint("workqueue/workqueue_execute_end", Step::Exit, 8),
];

/// The identity of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// Whether it is a hardware interrupt.
    is_irq: bool,
    /// The CPU of an interrupt or softirq; `None` for a work item, which may change its CPU.
    cpu: Option<u64>,
    /// The number of the interrupt, the vector of the softirq, or the address of the work item.
    number: u64,
}

/// A sample of one of [`TRACEPOINTS`].
#[derive(Debug, Clone)]
struct Event {
    time: u64,
    cpu: u64,
    step: Step,
    key: Key,
    /// Offset of its sample ID (`PERF_SAMPLE_IDENTIFIER`) in the file.
    id_at: usize,
}

/// Returns the recording with the id of [`ignored_id`] in each event that [`unpaired`] finds: the two tools would pair these
/// events differently. `None` if the tracepoints' own ids, in tracefs, cannot be read.
pub(super) fn without_unpaired(mut file: Vec<u8>) -> Option<Vec<u8>> {
    let mut tracepoints = HashMap::new();
    for tracepoint in TRACEPOINTS {
        let path = format!("/sys/kernel/tracing/events/{}/id", tracepoint.folder);
        let id: u16 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
        tracepoints.insert(id, tracepoint);
    }
    let mut events = events(&file, &tracepoints);
    events.sort_by_key(|event| event.time);
    let ignored = ignored_id(&file);
    for at in unpaired(&events) {
        file[at..at + 8].copy_from_slice(&ignored.to_le_bytes());
    }
    Some(file)
}

fn number(file: &[u8], at: usize, size: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size].copy_from_slice(&file[at..at + size]);
    u64::from_le_bytes(bytes)
}

fn offset(file: &[u8], at: usize) -> usize {
    usize::try_from(number(file, at, 8)).expect("an offset in the file")
}

/// The place of the attrs in the file, and the size of each, which includes the place of its ids.
fn attrs(file: &[u8]) -> (Range<usize>, usize) {
    // Offsets in the file header: 16 `attr_size`, 24 `attrs`, 40 `data`.
    let (start, size) = (offset(file, 24), offset(file, 32));
    (start..start + size, offset(file, 16))
}

/// The first id of `sched:sched_process_wait`, an event that both tools ignore; it was requested after the tracepoints of work.
fn ignored_id(file: &[u8]) -> u64 {
    let (attrs, size) = attrs(file);
    // The offset and size of an event's ids follow its attr.
    let mut ids = attrs
        .step_by(size)
        .map(|attr| offset(file, attr + size - 16));
    // The requested events come first: the event that rperf adds for task records is after them.
    let count = TRACEPOINTS.len();
    number(file, ids.nth(count).expect("an event that is ignored"), 8)
}

/// The samples of the tracepoints, in the order of the file. All attrs have the `sample_type` of the first.
fn events(file: &[u8], tracepoints: &HashMap<u16, Tracepoint>) -> Vec<Event> {
    // `sample_type` is at byte 24 of the attr.
    let fields = number(file, attrs(file).0.start + 24, 8);
    assert_eq!(
        fields & (IDENTIFIER | TIME | CPU | RAW),
        IDENTIFIER | TIME | CPU | RAW
    );
    // The offset of a field in a record, whose header has 8 bytes.
    let place = |field: u64| {
        let before = FIELDS.iter().take_while(|other| **other != field);
        8 + 8 * before.filter(|other| fields & **other != 0).count()
    };
    // Raw data follow their size.
    let (time_at, cpu_at, raw_at) = (place(TIME), place(CPU), place(RAW) + 4);
    let (mut at, size) = (offset(file, 40), offset(file, 48));
    let end = at + size;
    let mut events = Vec::new();
    while at < end {
        let kind = number(file, at, 4);
        let length = usize::try_from(number(file, at + 6, 2)).expect("16 bits");
        let common_type = (kind == u64::from(SAMPLE))
            .then(|| u16::try_from(number(file, at + raw_at, 2)).expect("16 bits"));
        if let Some(tracepoint) = common_type.and_then(|id| tracepoints.get(&id)) {
            let cpu = number(file, at + cpu_at, 4);
            events.push(Event {
                time: number(file, at + time_at, 8),
                cpu,
                step: tracepoint.step,
                key: Key {
                    is_irq: tracepoint.folder.starts_with("irq/irq"),
                    cpu: (tracepoint.size == 4).then_some(cpu),
                    // The first field after the 8 bytes of common fields.
                    number: number(file, at + raw_at + 8, tracepoint.size),
                },
                id_at: at + 8,
            });
        }
        at += length;
    }
    events
}

/// Returns the offsets of the ids of these events: the earlier of two raises or entries without a counterpart in
/// between, an exit without an entry, an entry and its exit on different CPUs, and a raise whose entry is on another CPU.
fn unpaired(events: &[Event]) -> HashSet<usize> {
    let mut found = HashSet::new();
    for (begin, end) in [(Step::Entry, Step::Exit), (Step::Raise, Step::Entry)] {
        let mut open: HashMap<Key, &Event> = HashMap::new();
        let remaining = events.iter().filter(|event| !found.contains(&event.id_at));
        for event in remaining.collect::<Vec<_>>() {
            if event.step == begin {
                let before = open.insert(event.key, event);
                found.extend(before.map(|before| before.id_at));
            } else if event.step == end {
                let before = open.remove(&event.key);
                let is_elsewhere = before.is_some_and(|before| before.cpu != event.cpu);
                // An entry without a raise is counted by both tools.
                if is_elsewhere || before.is_none() && end == Step::Exit {
                    found.extend(before.map(|before| before.id_at));
                    found.extend((end == Step::Exit).then_some(event.id_at));
                }
            }
        }
        // Both tools treat events that stay open alike.
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_and_moved_events_are_unpaired() {
        let event = |id_at, time, cpu, step| Event {
            time,
            cpu,
            step,
            key: Key {
                is_irq: false,
                cpu: None,
                number: 7,
            },
            id_at,
        };
        let events = [
            event(1, 1, 0, Step::Exit),
            event(2, 2, 0, Step::Raise),
            event(3, 3, 0, Step::Raise),
            event(4, 4, 0, Step::Entry),
            event(5, 5, 0, Step::Exit),
            event(6, 6, 0, Step::Raise),
            event(7, 7, 1, Step::Entry),
            event(8, 8, 0, Step::Exit),
        ];
        // 6 is not among them: once its entry, 7, is hidden, it stays open.
        assert_eq!(unpaired(&events), HashSet::from([1, 2, 7, 8]));
        let entry_elsewhere = [
            event(1, 1, 0, Step::Raise),
            event(2, 2, 1, Step::Entry),
            event(3, 3, 1, Step::Exit),
        ];
        assert_eq!(unpaired(&entry_elsewhere), HashSet::from([1]));
    }
}
