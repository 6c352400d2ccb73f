//! How long tasks were off their CPUs, out of samples of context switches and the records that tell who came and went.
//!
//! ```text
//! CPU 0:  sample of 7 | SWITCH out 7                                 becomes
//! CPU 1:                              ...  SWITCH in 7               sample of 7, with the time between for its period
//! ```
//!
//! The sample gets the time at which its task came back, so that it is not older than what was written before it.

use rperf_perfdata::EventDesc;
use rperf_wire::{
    CpuMode, Encoder, Endian, Misc, PERF_CONTEXT_USER, RawRecord, RecordHeader, RecordKind,
    RegsAbi, SampleLayout,
};
use rustc_hash::FxHashMap;

use crate::events::EventTable;
use crate::rounds::take_up_to;
use crate::{EventIndex, Order, Rounds};

/// Makes samples of the time off CPUs while a recording is made.
#[derive(Debug)]
pub struct OffCpu {
    events: EventTable,
    /// The event whose samples are taken when tasks leave their CPUs.
    event: EventIndex,
    /// Whether SWITCH records stay in the recording.
    keeps_switches: bool,
    order: Rounds,
    position: u64,
    /// What is to be looked at in order of time.
    waiting: Vec<(Order, Change)>,
    asleep: FxHashMap<u32, Asleep>,
    /// Nanoseconds from which on a wait is a sample of its own.
    threshold: u64,
    /// Shorter waits, by their samples without what differs from one to the next.
    short: FxHashMap<Vec<u8>, Short>,
}

/// Waits of a task in one place that were too short for samples of their own.
#[derive(Debug)]
struct Short {
    /// The first of them.
    asleep: Asleep,
    nanos: u64,
}

/// How many places of short waits are kept at once.
const PLACES: usize = 16 << 10;

/// What happens to a task.
#[derive(Debug)]
enum Change {
    /// It leaves its CPU: a sample with its header.
    Sampled { tid: u32, record: Vec<u8> },
    /// It was pushed off, and waits for nothing but a CPU.
    Preempted { tid: u32 },
    /// It is back.
    Back { tid: u32 },
}

/// A task off its CPU.
#[derive(Debug)]
struct Asleep {
    since: u64,
    record: Vec<u8>,
}

impl OffCpu {
    /// For a recording of these events, `event` among them.
    #[must_use]
    pub fn new(events: &[EventDesc], event: EventIndex, keeps_switches: bool) -> Self {
        Self {
            events: EventTable::new(Endian::NATIVE, events),
            event,
            keeps_switches,
            order: Rounds::new(),
            position: 0,
            waiting: Vec::new(),
            asleep: FxHashMap::default(),
            threshold: 0,
            short: FxHashMap::default(),
        }
    }

    /// Adds up waits of less than so many nanoseconds, each task's by where it waits: their samples come at the end.
    #[must_use]
    pub fn adding_up_below(mut self, threshold: u64) -> Self {
        self.threshold = threshold;
        self
    }

    /// Appends `records`, which go on where those before them ended, with samples whose period is the time off CPU in place of
    /// those of context switches.
    pub fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            if raw.kind == RecordKind::FINISHED_ROUND {
                self.order.finish_round();
                self.wake_up_to(self.order.limit(), to);
            }
            if !self.takes(&raw, record) {
                to.extend_from_slice(record);
            }
            self.position += record.len() as u64;
        }
    }

    /// Appends samples for tasks that are off their CPUs still, with the time until now. They may go on from here.
    pub fn end(&mut self, to: &mut Vec<u8>) {
        self.order.finish_all();
        let now = self.order.limit();
        self.wake_up_to(now, to);
        self.end_short(now, to);
        let layout = self.events.layout(self.event);
        let mut asleep: Vec<&mut Asleep> = self.asleep.values_mut().collect();
        asleep.sort_by_key(|asleep| asleep.since);
        for asleep in asleep {
            let nanos = now.saturating_sub(asleep.since);
            sample(layout, &asleep.record, (now, nanos), to);
            asleep.since = now;
        }
    }

    /// Takes a record of a context switch; false for one that goes on as it is.
    fn takes(&mut self, raw: &RawRecord<'_>, record: &[u8]) -> bool {
        let position = self.position;
        match raw.kind {
            RecordKind::SAMPLE => {
                let Some(glance) = self.events.glance(raw.body) else {
                    return false;
                };
                let order = self.order.order(glance.time, position);
                if glance.event != self.event {
                    return false;
                }
                if let Some(tid) = self.sleeper(raw) {
                    let record = record.to_vec();
                    self.waiting.push((order, Change::Sampled { tid, record }));
                }
                true
            }
            RecordKind::SWITCH | RecordKind::SWITCH_CPU_WIDE => {
                let (_, id) = self.events.split(raw);
                let order = self.order.order(id.time, position);
                let tid = id.pid_tid.map_or(0, |(_, tid)| tid);
                let change = match raw.misc.contains(Misc::SWITCH_OUT) {
                    false => Some(Change::Back { tid }),
                    true if raw.misc.contains(Misc::SWITCH_OUT_PREEMPT) => {
                        Some(Change::Preempted { tid })
                    }
                    true => None,
                };
                self.waiting.extend(change.map(|change| (order, change)));
                !self.keeps_switches
            }
            RecordKind::FINISHED_ROUND => false,
            _ => {
                let time = self.events.record_time(raw);
                self.order.order(time, position);
                false
            }
        }
    }

    /// The task of a sample, if it has a user space: those of the kernel wait for work most of their time.
    fn sleeper(&self, raw: &RawRecord<'_>) -> Option<u32> {
        let sample = self.events.sample(raw, |_| Order::default()).ok()??;
        let wire = &sample.wire;
        let mut chain = wire.callchain.iter().flat_map(|chain| chain.iter());
        let registers = wire.regs_user.as_ref();
        let is_user = registers.is_some_and(|registers| registers.abi != RegsAbi::None)
            || chain.any(|word| word == PERF_CONTEXT_USER)
            || raw.misc.cpu_mode() == CpuMode::User;
        (is_user && sample.tid != 0).then_some(sample.tid)
    }

    fn wake_up_to(&mut self, limit: u64, to: &mut Vec<u8>) {
        for (order, change) in take_up_to(&mut self.waiting, limit, |(order, _)| *order) {
            match change {
                Change::Sampled { tid, record } => {
                    let since = order.time;
                    self.asleep.insert(tid, Asleep { since, record });
                }
                Change::Preempted { tid } => drop(self.asleep.remove(&tid)),
                Change::Back { tid } => {
                    if let Some(asleep) = self.asleep.remove(&tid) {
                        self.back(asleep, order.time, to);
                    }
                }
            }
        }
    }

    /// A task comes back `now`.
    fn back(&mut self, asleep: Asleep, now: u64, to: &mut Vec<u8>) {
        let nanos = now.saturating_sub(asleep.since);
        if nanos >= self.threshold {
            sample(
                self.events.layout(self.event),
                &asleep.record,
                (now, nanos),
                to,
            );
            return;
        }
        let mut place = Vec::new();
        sample(
            self.events.layout(self.event),
            &asleep.record,
            (0, 0),
            &mut place,
        );
        let first = Short { asleep, nanos: 0 };
        self.short.entry(place).or_insert(first).nanos += nanos;
        if self.short.len() >= PLACES {
            self.end_short(now, to);
        }
    }

    /// Appends the sums of short waits.
    fn end_short(&mut self, now: u64, to: &mut Vec<u8>) {
        let mut short: Vec<Short> = self.short.drain().map(|(_, short)| short).collect();
        short.sort_by_key(|short| short.asleep.since);
        for Short { asleep, nanos } in short {
            sample(
                self.events.layout(self.event),
                &asleep.record,
                (now, nanos),
                to,
            );
        }
    }
}

/// Appends the sample of `record` with this time and period; without a time, without the CPU too.
fn sample(
    layout: Option<&SampleLayout>,
    record: &[u8],
    (time, nanos): (u64, u64),
    to: &mut Vec<u8>,
) {
    let split = RawRecord::split(record, Endian::NATIVE);
    let (Some(layout), Some((raw, size))) = (layout, split) else {
        return;
    };
    let Ok(mut wire) = layout.decode(raw.body, Endian::NATIVE) else {
        return;
    };
    wire.time = Some(time);
    wire.period = Some(nanos);
    if time == 0 {
        wire.cpu = wire.cpu.map(|_| 0);
    }
    let start = to.len();
    // The fields are those of the record, so that its size is the same.
    to.extend_from_slice(record.get(..RecordHeader::SIZE).unwrap_or_default());
    layout.encode(&wire, &mut Encoder::new(to, Endian::NATIVE));
    if to.len() - start != size {
        to.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, AttrFlags, EventType, Sample, SampleType, U64s};

    const EVENT: u64 = 5;

    fn events() -> Vec<EventDesc> {
        let event = |id: u64, config| EventDesc {
            attr: Attr {
                kind: EventType::SOFTWARE,
                config,
                sample_type: SampleType::IDENTIFIER
                    | SampleType::TID
                    | SampleType::TIME
                    | SampleType::PERIOD
                    | SampleType::CALLCHAIN,
                flags: AttrFlags::SAMPLE_ID_ALL,
                ..Attr::default()
            },
            ids: vec![id],
            name: format!("event {id}"),
        };
        vec![event(4, 0), event(EVENT, 10)]
    }

    fn record(kind: RecordKind, misc: u16, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let to = (&mut bytes, Endian::NATIVE);
        assert!(RecordHeader::encode_record(kind, Misc(misc), to, body));
        bytes
    }

    fn left(id: u64, tid: u32, time: u64, chain: &[u64]) -> Vec<u8> {
        let chain: Vec<u8> = chain.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sample = Sample {
            id: Some(id),
            pid_tid: Some((tid, tid)),
            time: Some(time),
            period: Some(1),
            callchain: Some(U64s::new(&chain, Endian::NATIVE)),
            ..Sample::default()
        };
        let layout = SampleLayout::new(&events()[0].attr);
        record(RecordKind::SAMPLE, 1, |to| layout.encode(&sample, to))
    }

    fn switch(misc: Misc, tid: u32, time: u64) -> Vec<u8> {
        record(RecordKind::SWITCH, misc.0, |to| {
            to.u32(tid);
            to.u32(tid);
            to.u64(time);
            to.u64(4);
        })
    }

    /// Thread, time and period of the samples of an event.
    fn samples(bytes: &[u8], id: u64) -> Vec<(u32, u64, u64)> {
        let layout = SampleLayout::new(&events()[0].attr);
        let mut found = Vec::new();
        for (raw, _) in RawRecord::all(bytes, Endian::NATIVE) {
            if raw.kind == RecordKind::SAMPLE {
                let sample = layout.decode(raw.body, Endian::NATIVE).unwrap();
                let fields = (sample.pid_tid, sample.time, sample.period);
                if let (Some((_, tid)), Some(time), Some(period)) = fields
                    && sample.id == Some(id)
                {
                    found.push((tid, time, period));
                }
            }
        }
        found
    }

    const USER: &[u64] = &[PERF_CONTEXT_USER, 0x1000];
    const OUT: Misc = Misc(1 << 13);
    const PREEMPTED: Misc = Misc(3 << 13);
    const IN: Misc = Misc(0);

    fn mark() -> Vec<u8> {
        record(RecordKind::FINISHED_ROUND, 0, |_| {})
    }

    fn off_cpu() -> OffCpu {
        OffCpu::new(&events(), EventIndex(1), false)
    }

    #[test]
    fn a_sample_waits_for_its_task_on_whatever_cpu() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        // CPU 1, on which 7 comes back, is read before CPU 0, which it left.
        let first = [left(4, 9, 5, USER), switch(IN, 7, 100), mark()].concat();
        off.rewrite(&first, &mut out);
        let second = [left(EVENT, 7, 40, USER), switch(OUT, 7, 41), mark()].concat();
        off.rewrite(&second, &mut out);
        assert_eq!(samples(&out, EVENT), [(7, 100, 60)]);
        assert_eq!(samples(&out, 4), [(9, 5, 1)], "others stay as they are");
        let kinds = |kind| {
            let records = RawRecord::all(&out, Endian::NATIVE);
            records.filter(|(raw, _)| raw.kind == kind).count()
        };
        assert_eq!(kinds(RecordKind::SWITCH), 0);
        assert_eq!(kinds(RecordKind::FINISHED_ROUND), 2);
    }

    #[test]
    fn who_is_preempted_or_of_the_kernel_is_not_off() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        let records = [
            left(EVENT, 7, 10, USER),
            switch(PREEMPTED, 7, 11),
            switch(IN, 7, 20),
            left(EVENT, 8, 12, &[0xffff_ffff_8100_0000]),
            switch(OUT, 8, 13),
            switch(IN, 8, 30),
        ];
        off.rewrite(&records.concat(), &mut out);
        off.end(&mut out);
        assert!(samples(&out, EVENT).is_empty());
    }

    #[test]
    fn who_is_away_at_the_end_was_away_until_then() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        off.rewrite(
            &[left(EVENT, 7, 10, USER), left(4, 9, 50, USER)].concat(),
            &mut out,
        );
        off.end(&mut out);
        // Another file goes on where this one ends.
        off.rewrite(&switch(IN, 7, 80), &mut out);
        off.end(&mut out);
        assert_eq!(samples(&out, EVENT), [(7, 50, 40), (7, 80, 30)]);
    }

    #[test]
    fn short_waits_are_added_up_by_task_and_place() {
        let mut off = off_cpu().adding_up_below(50);
        let mut out = Vec::new();
        let elsewhere: &[u64] = &[PERF_CONTEXT_USER, 0x2000];
        let wait = |tid, chain, from, until| {
            let left = left(EVENT, tid, from, chain);
            [left, switch(OUT, tid, from), switch(IN, tid, until)].concat()
        };
        let records = [
            wait(7, USER, 10, 20),
            wait(7, elsewhere, 30, 34),
            wait(7, USER, 40, 45),
            wait(7, USER, 50, 100),
            wait(8, USER, 60, 61),
        ];
        off.rewrite(
            &[&records.concat()[..], &mark(), &mark()].concat(),
            &mut out,
        );
        assert_eq!(samples(&out, EVENT), [(7, 100, 50)]);
        off.end(&mut out);
        let expected = [(7, 100, 50), (7, 100, 15), (7, 100, 4), (8, 100, 1)];
        assert_eq!(samples(&out, EVENT), expected);
        off.end(&mut out);
        assert_eq!(samples(&out, EVENT).len(), 4, "they are told once");
    }

    #[test]
    fn switches_stay_where_they_are_wanted() {
        let mut off = OffCpu::new(&events(), EventIndex(1), true);
        let mut out = Vec::new();
        let switch = switch(OUT, 7, 11);
        off.rewrite(&switch, &mut out);
        assert_eq!(out, switch);
    }
}
