//! Off-CPU time of tasks, from SWITCH records and the samples of an event that occurs when tasks are switched out.
//!
//! ```text
//! CPU 0:  sample of 7 | SWITCH out 7
//! CPU 1:                              ...  SWITCH in 7
//!
//! become:  sample of 7, whose period is the time from the sample of CPU 0 to SWITCH in
//! ```
//!
//! The new sample has the time at which its task was switched in, so that it is not older than the records written before it.

use rperf_perfdata::{EventDesc, Rewriter};
use rperf_replay::{EventIndex, EventTable, Order, Rounds, take_up_to};
use rperf_wire::{
    CpuMode, Encoder, Endian, Misc, PERF_CONTEXT_USER, RawRecord, RecordHeader, RecordKind,
    RegsAbi, SampleLayout,
};
use rustc_hash::FxHashMap;

/// Generates off-CPU samples from context switches while recording.
#[derive(Debug)]
pub struct OffCpu {
    events: EventTable,
    /// The event sampled when tasks are switched out.
    event: EventIndex,
    /// Whether SWITCH records are kept.
    keeps_switches: bool,
    /// The time up to which all records have been read. A round is a pass of the recorder over all rings.
    rounds: Rounds,
    /// Number of bytes read, the position of the next record.
    position: u64,
    /// Pending changes, to be handled in time order.
    pending: Vec<(Order, StateChange)>,
    /// Tasks that are off their CPUs, by thread id.
    asleep: FxHashMap<u32, SleepingTask>,
    /// Waits of at least this number of nanoseconds get separate samples.
    threshold: u64,
    /// Waits shorter than `threshold`, by their samples, in which time, period and CPU are 0.
    short: FxHashMap<Vec<u8>, ShortWaits>,
}

/// Waits of a task at one place that were too short for separate samples.
#[derive(Debug)]
struct ShortWaits {
    /// The task at the start of the first wait.
    asleep: SleepingTask,
    /// The sum of the waits.
    nanos: u64,
}

/// The number of entries of [`OffCpu::short`] at which their sums are written.
const MAX_SHORT_WAITS: usize = 16 << 10;

/// A change of a task's state.
#[derive(Debug)]
enum StateChange {
    /// The task is switched out; `record` is the sample.
    Sampled { tid: u32, record: Vec<u8> },
    /// The task was preempted, and is still runnable.
    Preempted { tid: u32 },
    /// The task is switched in.
    SwitchedIn { tid: u32 },
}

/// A task that is off its CPU.
#[derive(Debug)]
struct SleepingTask {
    /// The time at which it was switched out, or the time of the end of the previous file if that is later.
    since: u64,
    /// The sample at which it was switched out.
    record: Vec<u8>,
}

impl OffCpu {
    /// Creates the rewriter for these events; `event` is one of them.
    #[must_use]
    pub fn new(events: &[EventDesc], event: EventIndex, keeps_switches: bool) -> Self {
        Self {
            events: EventTable::new(Endian::NATIVE, events),
            event,
            keeps_switches,
            rounds: Rounds::new(),
            position: 0,
            pending: Vec::new(),
            asleep: FxHashMap::default(),
            threshold: 0,
            short: FxHashMap::default(),
        }
    }

    /// Sums up waits of less than `threshold` nanoseconds by task and place: samples of the sums are written at the end, or
    /// earlier if there are many.
    #[must_use]
    pub fn adding_up_below(mut self, threshold: u64) -> Self {
        self.threshold = threshold;
        self
    }

    /// Handles a record; returns whether it is replaced or dropped.
    fn handle(&mut self, raw: &RawRecord<'_>, record: &[u8]) -> bool {
        let position = self.position;
        match raw.kind {
            RecordKind::SAMPLE => {
                let Some(head) = self.events.sample_head(raw.body) else {
                    return false;
                };
                let order = self.rounds.add_record(head.time, position);
                if head.event != self.event {
                    return false;
                }
                if let Some(tid) = self.task_of(raw) {
                    let record = record.to_vec();
                    self.pending
                        .push((order, StateChange::Sampled { tid, record }));
                }
                true
            }
            RecordKind::SWITCH | RecordKind::SWITCH_CPU_WIDE => {
                let (_, id) = self.events.split(raw);
                let order = self.rounds.add_record(id.time, position);
                let tid = id.pid_tid.map_or(0, |(_, tid)| tid);
                let change = match raw.misc.contains(Misc::SWITCH_OUT) {
                    false => Some(StateChange::SwitchedIn { tid }),
                    true if raw.misc.contains(Misc::SWITCH_OUT_PREEMPT) => {
                        Some(StateChange::Preempted { tid })
                    }
                    // The change is the sample of `event`, which has the time at which the task was switched out.
                    true => None,
                };
                self.pending.extend(change.map(|change| (order, change)));
                !self.keeps_switches
            }
            RecordKind::FINISHED_ROUND => false,
            _ => {
                let time = self.events.record_time(raw);
                self.rounds.add_record(time, position);
                false
            }
        }
    }

    /// Returns the thread id of a sample; `None` for the idle task and kernel threads, which wait most of the time, and if the
    /// sample cannot be decoded.
    fn task_of(&self, raw: &RawRecord<'_>) -> Option<u32> {
        // The position in the order is not used.
        let sample = self.events.sample(raw, |_| Order::default()).ok()??;
        let wire = &sample.wire;
        let mut chain = wire.callchain.iter().flat_map(|chain| chain.iter());
        let registers = wire.regs_user.as_ref();
        let is_user = registers.is_some_and(|registers| registers.abi != RegsAbi::None)
            || chain.any(|word| word == PERF_CONTEXT_USER)
            || raw.misc.cpu_mode() == CpuMode::User;
        (is_user && sample.tid != 0).then_some(sample.tid)
    }

    /// Applies the pending changes up to the time `limit`, in order.
    fn apply_up_to(&mut self, limit: u64, to: &mut Vec<u8>) {
        for (order, change) in take_up_to(&mut self.pending, limit, |(order, _)| *order) {
            match change {
                StateChange::Sampled { tid, record } => {
                    let since = order.time;
                    self.asleep.insert(tid, SleepingTask { since, record });
                }
                StateChange::Preempted { tid } => drop(self.asleep.remove(&tid)),
                StateChange::SwitchedIn { tid } => {
                    if let Some(asleep) = self.asleep.remove(&tid) {
                        self.switch_in(asleep, order.time, to);
                    }
                }
            }
        }
    }

    /// Handles a task that is switched in at `now`.
    fn switch_in(&mut self, asleep: SleepingTask, now: u64, to: &mut Vec<u8>) {
        let nanos = now.saturating_sub(asleep.since);
        if nanos >= self.threshold {
            append_sample(
                self.events.layout(self.event),
                &asleep.record,
                now,
                nanos,
                to,
            );
            return;
        }
        let mut key = Vec::new();
        let (no_time, no_period) = (0, 0);
        append_sample(
            self.events.layout(self.event),
            &asleep.record,
            no_time,
            no_period,
            &mut key,
        );
        let first = ShortWaits { asleep, nanos: 0 };
        self.short.entry(key).or_insert(first).nanos += nanos;
        if self.short.len() >= MAX_SHORT_WAITS {
            self.end_short(now, to);
        }
    }

    /// Appends the sums of short waits, with the time `now`.
    fn end_short(&mut self, now: u64, to: &mut Vec<u8>) {
        let mut short: Vec<ShortWaits> = self.short.drain().map(|(_, short)| short).collect();
        short.sort_by_key(|short| short.asleep.since);
        for ShortWaits { asleep, nanos } in short {
            append_sample(
                self.events.layout(self.event),
                &asleep.record,
                now,
                nanos,
                to,
            );
        }
    }
}

impl Rewriter for OffCpu {
    /// Appends `records`, a continuation of the previous ones. Samples of context switches are dropped, or replaced by samples
    /// whose period is the off-CPU time; SWITCH records are dropped unless they are kept on request.
    fn rewrite(&mut self, records: &[u8], _is_behind: bool, to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            if raw.kind == RecordKind::FINISHED_ROUND {
                self.rounds.finish_round();
                self.apply_up_to(self.rounds.limit(), to);
            }
            if !self.handle(&raw, record) {
                to.extend_from_slice(record);
            }
            self.position += record.len() as u64;
        }
    }

    /// Appends the sums of short waits, and samples for tasks that are still off their CPUs: their period is the time until the
    /// latest record. If another file follows, the next period of these tasks starts at the time of that record.
    fn end(&mut self, to: &mut Vec<u8>) {
        self.rounds.finish_all();
        let now = self.rounds.limit();
        self.apply_up_to(now, to);
        self.end_short(now, to);
        let layout = self.events.layout(self.event);
        let mut asleep: Vec<&mut SleepingTask> = self.asleep.values_mut().collect();
        asleep.sort_by_key(|asleep| asleep.since);
        for asleep in asleep {
            let nanos = now.saturating_sub(asleep.since);
            append_sample(layout, &asleep.record, now, nanos, to);
            asleep.since = now;
        }
    }
}

/// Appends the sample in `record` with this time, and with `nanos` as its period. Time 0, for keys of [`OffCpu::short`], also
/// sets the CPU to 0. A sample that cannot be decoded is dropped.
fn append_sample(
    layout: Option<&SampleLayout>,
    record: &[u8],
    time: u64,
    nanos: u64,
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
    // The header is that of `record`: the fields are the same, so the size is too. Otherwise the sample is dropped.
    to.extend_from_slice(record.get(..RecordHeader::SIZE).unwrap_or_default());
    layout.encode(&wire, &mut Encoder::new(to, Endian::NATIVE));
    if to.len() - start != size {
        to.truncate(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, AttrFlags, EventType, SampleRecord, SampleType, U64s};

    /// The id of the event sampled when tasks are switched out.
    const EVENT: u64 = 5;
    /// The id of the other event.
    const OTHER: u64 = 4;

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
        vec![event(OTHER, 0), event(EVENT, 10)]
    }

    fn record(kind: RecordKind, misc: u16, body: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(RecordHeader::encode_record(
            kind,
            Misc(misc),
            &mut bytes,
            Endian::NATIVE,
            body
        ));
        bytes
    }

    fn sample_of(id: u64, tid: u32, time: u64, chain: &[u64]) -> Vec<u8> {
        let chain: Vec<u8> = chain.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sample = SampleRecord {
            id: Some(id),
            pid_tid: Some((tid, tid)),
            time: Some(time),
            period: Some(1),
            callchain: Some(U64s::new(&chain, Endian::NATIVE)),
            ..SampleRecord::default()
        };
        let layout = SampleLayout::new(&events()[0].attr);
        record(RecordKind::SAMPLE, Misc::KERNEL.0, |to| {
            layout.encode(&sample, to);
        })
    }

    fn switch(misc: Misc, tid: u32, time: u64) -> Vec<u8> {
        record(RecordKind::SWITCH, misc.0, |to| {
            to.u32(tid);
            to.u32(tid);
            to.u64(time);
            to.u64(OTHER);
        })
    }

    /// Returns thread, time and period of the samples of an event.
    fn samples(bytes: &[u8], id: u64) -> Vec<(u32, u64, u64)> {
        let layout = SampleLayout::new(&events()[0].attr);
        let mut samples_of_event = Vec::new();
        for (raw, _) in RawRecord::all(bytes, Endian::NATIVE) {
            if raw.kind == RecordKind::SAMPLE {
                let sample = layout.decode(raw.body, Endian::NATIVE).unwrap();
                let fields = (sample.pid_tid, sample.time, sample.period);
                if let (Some((_, tid)), Some(time), Some(period)) = fields
                    && sample.id == Some(id)
                {
                    samples_of_event.push((tid, time, period));
                }
            }
        }
        samples_of_event
    }

    /// Rewriting does not lag behind the recording (`is_behind` of [`Rewriter::rewrite`], which [`OffCpu`] ignores).
    const NOT_BEHIND: bool = false;
    const USER: &[u64] = &[PERF_CONTEXT_USER, 0x1000];
    const OUT: Misc = Misc::SWITCH_OUT;
    const PREEMPTED: Misc = Misc(Misc::SWITCH_OUT.0 | Misc::SWITCH_OUT_PREEMPT.0);
    const IN: Misc = Misc(0);

    fn round_end() -> Vec<u8> {
        record(RecordKind::FINISHED_ROUND, 0, |_| {})
    }

    fn off_cpu() -> OffCpu {
        let keeps_switches = false;
        // The event with the id `EVENT`.
        OffCpu::new(&events(), EventIndex(1), keeps_switches)
    }

    #[test]
    fn a_wait_may_end_on_another_cpu_whose_records_are_read_first() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        // CPU 1, where 7 is switched in, is read before CPU 0, where it was switched out.
        let first = [
            sample_of(OTHER, 9, 5, USER),
            switch(IN, 7, 100),
            round_end(),
        ]
        .concat();
        off.rewrite(&first, NOT_BEHIND, &mut out);
        let second = [
            sample_of(EVENT, 7, 40, USER),
            switch(OUT, 7, 41),
            round_end(),
        ]
        .concat();
        off.rewrite(&second, NOT_BEHIND, &mut out);
        assert_eq!(samples(&out, EVENT), [(7, 100, 60)]);
        assert_eq!(
            samples(&out, OTHER),
            [(9, 5, 1)],
            "other records are unchanged"
        );
        let kinds = |kind| {
            let records = RawRecord::all(&out, Endian::NATIVE);
            records.filter(|(raw, _)| raw.kind == kind).count()
        };
        assert_eq!(kinds(RecordKind::SWITCH), 0);
        assert_eq!(kinds(RecordKind::FINISHED_ROUND), 2);
    }

    #[test]
    fn preempted_tasks_and_kernel_threads_are_not_off_cpu() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        let records = [
            sample_of(EVENT, 7, 10, USER),
            switch(PREEMPTED, 7, 11),
            switch(IN, 7, 20),
            sample_of(EVENT, 8, 12, &[0xffff_ffff_8100_0000]),
            switch(OUT, 8, 13),
            switch(IN, 8, 30),
        ];
        off.rewrite(&records.concat(), NOT_BEHIND, &mut out);
        off.end(&mut out);
        assert!(samples(&out, EVENT).is_empty());
    }

    #[test]
    fn off_cpu_time_lasts_until_the_end() {
        let mut off = off_cpu();
        let mut out = Vec::new();
        off.rewrite(
            &[sample_of(EVENT, 7, 10, USER), sample_of(OTHER, 9, 50, USER)].concat(),
            NOT_BEHIND,
            &mut out,
        );
        off.end(&mut out);
        // Another file continues where this one ends.
        off.rewrite(&switch(IN, 7, 80), NOT_BEHIND, &mut out);
        off.end(&mut out);
        assert_eq!(samples(&out, EVENT), [(7, 50, 40), (7, 80, 30)]);
    }

    #[test]
    fn short_waits_are_added_up_by_task_and_place() {
        let mut off = off_cpu().adding_up_below(50);
        let mut out = Vec::new();
        let elsewhere: &[u64] = &[PERF_CONTEXT_USER, 0x2000];
        let wait = |tid, chain, from, until| {
            let sample = sample_of(EVENT, tid, from, chain);
            [sample, switch(OUT, tid, from), switch(IN, tid, until)].concat()
        };
        let records = [
            wait(7, USER, 10, 20),
            wait(7, elsewhere, 30, 34),
            wait(7, USER, 40, 45),
            wait(7, USER, 50, 100),
            wait(8, USER, 60, 61),
        ];
        // The records of a round are handled at the end of the next round.
        off.rewrite(
            &[&records.concat()[..], &round_end(), &round_end()].concat(),
            NOT_BEHIND,
            &mut out,
        );
        assert_eq!(samples(&out, EVENT), [(7, 100, 50)]);
        off.end(&mut out);
        let expected = [(7, 100, 50), (7, 100, 15), (7, 100, 4), (8, 100, 1)];
        assert_eq!(samples(&out, EVENT), expected);
        off.end(&mut out);
        assert_eq!(
            samples(&out, EVENT).len(),
            4,
            "short waits are written once"
        );
    }

    #[test]
    fn switch_records_are_kept_on_request() {
        let keeps_switches = true;
        let mut off = OffCpu::new(&events(), EventIndex(1), keeps_switches);
        let mut out = Vec::new();
        let switch = switch(OUT, 7, 11);
        off.rewrite(&switch, NOT_BEHIND, &mut out);
        assert_eq!(out, switch);
    }
}
