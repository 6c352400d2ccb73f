//! Encodes the payloads of events, on several threads.

use rperf_replay::{NonSampleRecord, Render, Sample, World};
use rperf_resolve::{StackScratch, UserStacks};
use rperf_wire::{Endian, Mmap, Record, RecordKind, Task};

use super::CtfLayout;
use super::fields::put_text;

/// Encodes the records of one recording.
pub struct CtfRender<'r, 'w> {
    layout: &'r CtfLayout,
    stacks: &'r UserStacks<'r, 'w>,
    endian: Endian,
    /// The types of records, other than samples, that are used: those with an event class, and `LOST`, whose losses are
    /// reported.
    kinds: Vec<RecordKind>,
}

/// The events of a block: consecutive records that one thread encodes.
#[derive(Debug, Default)]
pub struct CtfBlock {
    pub(super) events: Vec<CtfEvent>,
    /// The payloads, one after the other.
    pub(super) payloads: Vec<u8>,
    /// Number of samples in the block.
    pub samples: u64,
}

/// An event or a loss of records in a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct CtfEvent {
    /// Nanoseconds of the recording's clock; 0 for records that precede the recording.
    pub(super) time: u64,
    pub(super) cpu: u32,
    pub(super) content: CtfContent,
    /// Where the payload ends in [`CtfBlock::payloads`]; the payload of a loss is empty.
    pub(super) end: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CtfContent {
    /// An event of the class with this id.
    Event(u32),
    /// This number of records was lost.
    Lost(u64),
}

/// State of one worker.
#[derive(Default)]
pub struct CtfScratch {
    unwinding: StackScratch,
}

impl<'r, 'w> CtfRender<'r, 'w> {
    /// Encodes events of `layout`; `stacks` completes callchains.
    #[must_use]
    pub fn new(layout: &'r CtfLayout, stacks: &'r UserStacks<'r, 'w>, endian: Endian) -> Self {
        let mut kinds = layout.record_kinds();
        kinds.push(RecordKind::LOST);
        Self {
            layout,
            stacks,
            endian,
            kinds,
        }
    }
}

impl CtfBlock {
    fn push(&mut self, time: u64, cpu: u32, content: CtfContent) {
        self.events.push(CtfEvent {
            time,
            // Events of an unknown CPU are in the stream of CPU 0.
            cpu: if cpu == u32::MAX { 0 } else { cpu },
            content,
            end: self.payloads.len(),
        });
    }
}

impl Render for CtfRender<'_, '_> {
    type Out = CtfBlock;
    type Scratch = CtfScratch;

    fn reuse(&self, block: &mut CtfBlock) {
        block.events.clear();
        block.payloads.clear();
        block.samples = 0;
    }

    fn wanted(&self) -> &[RecordKind] {
        &self.kinds
    }

    fn render(
        &self,
        _: &World,
        sample: &Sample<'_>,
        scratch: &mut CtfScratch,
        block: &mut CtfBlock,
    ) {
        let Some(class) = self.layout.classes.get(sample.event.0 as usize) else {
            return;
        };
        let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
        let chain = unwound.or(sample.wire.callchain);
        class.encode(sample, chain, &mut block.payloads);
        block.samples += 1;
        // The id of the event's class is the event's index.
        let content = CtfContent::Event(sample.event.0);
        block.push(sample.order.time, sample.cpu, content);
    }

    fn record(
        &self,
        _: &World,
        record: &NonSampleRecord<'_>,
        _: &mut CtfScratch,
        block: &mut CtfBlock,
    ) {
        // Records that cannot be decoded were counted in `Diagnostics::bad_records` by the first pass over the file.
        let Ok(decoded) = Record::decode(&record.raw, self.endian) else {
            return;
        };
        let (time, cpu) = (record.order.time, record.id.cpu.unwrap_or_default());
        if let Record::Lost(lost) = decoded {
            block.push(time, cpu, CtfContent::Lost(lost.lost));
            return;
        }
        let Some(class) = self.layout.record_class_id(record.raw.kind) else {
            return;
        };
        put_record(&decoded, &mut block.payloads);
        block.push(time, cpu, CtfContent::Event(class));
    }
}

/// Appends the payload of a record, in the order of the fields of its class.
fn put_record(record: &Record<'_>, out: &mut Vec<u8>) {
    match record {
        Record::Comm(comm) => {
            put_u32s(out, &[comm.pid, comm.tid]);
            put_text(out, comm.comm);
        }
        Record::Fork(task) | Record::Exit(task) => put_task(out, task),
        Record::Mmap(mapped) => {
            put_mapping(out, mapped);
            put_text(out, mapped.filename);
        }
        Record::Mmap2(mapped) => {
            put_mapping(out, &mapped.mmap);
            put_u32s(out, &[mapped.prot, mapped.flags]);
            put_text(out, mapped.mmap.filename);
        }
        _ => {}
    }
}

/// Appends numbers as little-endian, like all payloads, whatever the byte order of the recording.
fn put_u32s(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

fn put_task(out: &mut Vec<u8>, task: &Task) {
    put_u32s(out, &[task.pid, task.ppid, task.tid, task.ptid]);
    out.extend(task.time.to_le_bytes());
}

fn put_mapping(out: &mut Vec<u8>, mapped: &Mmap<'_>) {
    put_u32s(out, &[mapped.pid.cast_unsigned(), mapped.tid]);
    for word in [mapped.start, mapped.len, mapped.pgoff] {
        out.extend(word.to_le_bytes());
    }
}
