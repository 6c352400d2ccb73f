//! Merges each `sched_stat_*` sample with the last `sched_switch` sample of its task: how long a task slept, with the stack where
//! it went to sleep.
//!
//! ```text
//! sched_switch of task 7, with its stack ... sched_stat_sleep: task 7, 5 ms    becomes
//!                                            sched_switch of task 7, period 5 ms, with the time of sched_stat_sleep
//! ```

use rperf_perfdata::EventDesc;
use rperf_replay::{EventTable, Order, Rounds, take_up_to};
use rperf_tracepoint::{FieldReader, Formats};
use rperf_wire::{Encoder, Endian, RawRecord, RecordHeader, RecordKind};
use rustc_hash::FxHashMap;

use crate::pipeline::Transform;

/// The kind of an event.
#[derive(Debug, Clone, Copy)]
enum SchedEvent {
    /// The task of the sample is switched out.
    Switch,
    /// The task of the sample ends.
    Exit,
    /// A `sched_stat_*` event, with the reader of the field that has the thread id of the task.
    Stat(FieldReader),
    Other,
}

/// Merges the samples of one recording. Samples of `sched_switch` and `sched_process_exit` are dropped, and so are `sched_stat_*`
/// samples of tasks without an earlier `sched_switch` sample. All other records are copied, also `sched_stat_*` samples whose
/// format is unknown or has no thread id.
#[derive(Debug)]
pub struct SchedStatMerger {
    events: EventTable,
    /// The kinds of the events, by event.
    kinds: Vec<SchedEvent>,
    endian: Endian,
    /// The place of each record in the order of time, and the time up to which no further records are expected.
    order: Rounds,
    /// Size in bytes of the records so far.
    position: u64,
    /// Samples of events that are not [`SchedEvent::Other`], to be handled in the order of time.
    waiting: Vec<(Order, Vec<u8>)>,
    /// The last `sched_switch` sample of each task, by thread id.
    switches: FxHashMap<u32, Vec<u8>>,
}

impl SchedStatMerger {
    /// Creates the transform for these events; `None` unless `sched:sched_switch` and a `sched:sched_stat_*` event are among
    /// them.
    #[must_use]
    pub fn new(endian: Endian, events: &[EventDesc], formats: &Formats) -> Option<Self> {
        let kinds: Vec<SchedEvent> = events
            .iter()
            .map(|event| kind(event, formats, endian))
            .collect();
        let has_switch = kinds.iter().any(|kind| matches!(kind, SchedEvent::Switch));
        let has_stat = kinds.iter().any(|kind| matches!(kind, SchedEvent::Stat(_)));
        (has_switch && has_stat).then(|| Self {
            events: EventTable::new(endian, events),
            kinds,
            endian,
            order: Rounds::new(),
            position: 0,
            waiting: Vec::new(),
            switches: FxHashMap::default(),
        })
    }

    /// Handles the samples that no later record can precede.
    fn merge(&mut self, to: &mut Vec<u8>) {
        let limit = self.order.limit();
        for (_, record) in take_up_to(&mut self.waiting, limit, |(order, _)| *order) {
            self.handle(&record, to);
        }
    }

    /// Handles the next sample in the order of time.
    fn handle(&mut self, record: &[u8], to: &mut Vec<u8>) {
        let Some((raw, _)) = RawRecord::split(record, self.endian) else {
            return;
        };
        // The sample is in order already: its position is not used.
        let Ok(Some(sample)) = self.events.sample(&raw, |_| Order::default()) else {
            return;
        };
        match self.kinds.get(sample.event.0 as usize) {
            Some(SchedEvent::Switch) => {
                self.switches.insert(sample.tid, record.to_vec());
            }
            Some(SchedEvent::Exit) => {
                self.switches.remove(&sample.tid);
            }
            Some(SchedEvent::Stat(reader)) => {
                let task = sample.wire.raw.and_then(|raw| reader.u64(raw));
                let task = task.and_then(|task| u32::try_from(task).ok());
                let switch = task.and_then(|task| self.switches.get(&task));
                if let Some(switch) = switch {
                    self.write(switch, sample.wire.time, sample.period, to);
                }
            }
            _ => {}
        }
    }

    /// Appends a `sched_switch` sample with the time and period of a `sched_stat_*` sample.
    fn write(&self, switch: &[u8], time: Option<u64>, period: u64, to: &mut Vec<u8>) {
        let Some((raw, _)) = RawRecord::split(switch, self.endian) else {
            return;
        };
        // The sample's position in the order is not used.
        let Ok(Some(sample)) = self.events.sample(&raw, |_| Order::default()) else {
            return;
        };
        let Some(layout) = self.events.layout(sample.event) else {
            return;
        };
        let mut wire = sample.wire;
        wire.time = time;
        wire.period = Some(period);
        RecordHeader::encode_record(
            raw.kind,
            raw.misc,
            to,
            self.endian,
            |to: &mut Encoder<'_>| {
                layout.encode(&wire, to);
            },
        );
    }
}

fn kind(event: &EventDesc, formats: &Formats, endian: Endian) -> SchedEvent {
    match event.name.as_str() {
        "sched:sched_switch" => SchedEvent::Switch,
        "sched:sched_process_exit" => SchedEvent::Exit,
        name if name.starts_with("sched:sched_stat_") => {
            let format = formats.of_event(&event.attr).ok();
            let mut fields = format.iter().flat_map(|format| format.fields());
            let task = fields.find(|(field, _)| field.name == "pid");
            task.map_or(SchedEvent::Other, |(field, _)| {
                SchedEvent::Stat(field.reader(endian))
            })
        }
        _ => SchedEvent::Other,
    }
}

impl Transform for SchedStatMerger {
    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            let position = self.position;
            self.position += record.len() as u64;
            // `kind` is that of the sample's event; `None` if the event is unknown or the record is not a sample. `raw.kind` is
            // the type of the record.
            let (kind, time) = match raw.kind {
                RecordKind::SAMPLE => {
                    let head = self.events.sample_head(raw.body);
                    let kind = head.and_then(|head| self.kinds.get(head.event.0 as usize));
                    (kind, head.and_then(|head| head.time))
                }
                _ => (None, self.events.record_time(&raw)),
            };
            let order = self.order.add_record(time, position);
            match kind {
                None | Some(SchedEvent::Other) => {
                    if raw.kind == RecordKind::FINISHED_ROUND {
                        self.order.finish_round();
                        self.merge(to);
                    }
                    to.extend_from_slice(record);
                }
                Some(_) => self.waiting.push((order, record.to_vec())),
            }
        }
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.order.finish_all();
        self.merge(to);
    }
}
