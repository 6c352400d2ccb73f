//! The part of a pass that decodes records for observers: on several threads in [`ObserverPass::run`], otherwise on
//! the calling thread.

use rperf_replay::{EventIndex, NonSampleRecord, Render, Sample, World};
use rperf_wire::{Misc, Record, RecordKind, SampleType};

use crate::block::{RecordBlock, RecordContent};
use crate::{ContextSwitch, EventContext, Loss, ObserverPass, PrepareSamples, TaskChange, TaskId};

/// Decodes the records of a pass.
pub(crate) struct Decoder<'d, 'p, P> {
    pub(crate) pass: &'d ObserverPass<'p, P>,
    /// Whether a recorder's LOST_SAMPLES totals, at the end of the recording, are delivered: not if the recording has LOST
    /// records, which report the same losses. Always set for live ring buffers.
    pub(crate) with_loss_totals: bool,
    /// Whether events that the observer did not select are decoded, too.
    pub(crate) reads_all: bool,
}

/// Whether a LOST_SAMPLES record is a recorder's total: its time is missing or 0, and its CPU has no meaning.
fn is_loss_total(record: &NonSampleRecord<'_>) -> bool {
    record.id.time.is_none_or(|time| time == 0)
}

impl<P: PrepareSamples> Render for Decoder<'_, '_, P> {
    type Out = RecordBlock<P::Detail>;
    type Scratch = ();

    fn render(&self, world: &World, sample: &Sample<'_>, _: &mut (), out: &mut Self::Out) {
        let at = EventContext::of_sample(sample);
        let Some(layout) = self.pass.layouts().of(sample.event) else {
            // An event that is not typed (not a tracepoint whose fields can be read) is delivered without raw data.
            if let Some(detail) = self.pass.preparation().prepare(world, sample, None) {
                out.push(at, RecordContent::Sample(detail), &[]);
            }
            return;
        };
        let raw = sample.wire.raw.unwrap_or_default();
        let Some(event) = layout.read(raw) else {
            out.push(at, RecordContent::Truncated, &[]);
            return;
        };
        if let Some(detail) = self.pass.preparation().prepare(world, sample, Some(&event)) {
            out.push(at, RecordContent::Event(sample.event, detail), raw);
        }
    }

    fn fields(&self) -> SampleType {
        self.pass.preparation().fields() | SampleType::CPU | SampleType::RAW
    }

    fn reads(&self, event: EventIndex) -> bool {
        self.reads_all || self.pass.reads(event)
    }

    fn reuse(&self, out: &mut Self::Out) {
        out.clear();
    }

    fn wanted(&self) -> &[RecordKind] {
        self.pass.kinds()
    }

    fn record(&self, _: &World, record: &NonSampleRecord<'_>, _: &mut (), out: &mut Self::Out) {
        let mut at = EventContext::of_record(record);
        let misc = record.raw.misc;
        // Records that cannot be decoded are skipped. When a recording was opened, they were counted in its diagnostics.
        let Ok(decoded) = Record::decode(&record.raw, self.pass.layouts().endian()) else {
            return;
        };
        let content = match decoded {
            Record::Fork(task) => RecordContent::task(TaskChange::Fork {
                parent: TaskId {
                    pid: task.ppid,
                    tid: task.ptid,
                },
                child: TaskId {
                    pid: task.pid,
                    tid: task.tid,
                },
            }),
            Record::Exit(task) => RecordContent::task(TaskChange::Exit(TaskId {
                pid: task.pid,
                tid: task.tid,
            })),
            Record::Comm(comm) => {
                let change = TaskChange::Comm {
                    task: TaskId {
                        pid: comm.pid,
                        tid: comm.tid,
                    },
                    // Stored in the block's bytes: the last argument of `push`.
                    name: &[],
                    by_exec: misc.contains(Misc::COMM_EXEC),
                };
                return out.push(at, RecordContent::task(change), comm.comm);
            }
            Record::Switch(_) => RecordContent::Switch(switch(misc)),
            Record::Lost(lost) => RecordContent::Lost(Loss { records: lost.lost }),
            Record::LostSamples(lost) => {
                if is_loss_total(record) {
                    if !self.with_loss_totals {
                        return;
                    }
                    at.cpu = None;
                }
                RecordContent::Lost(Loss { records: lost.lost })
            }
            _ => return,
        };
        out.push(at, content, &[]);
    }
}

fn switch(misc: Misc) -> ContextSwitch {
    match misc.contains(Misc::SWITCH_OUT) {
        true if misc.contains(Misc::SWITCH_OUT_PREEMPT) => ContextSwitch::Preempted,
        true => ContextSwitch::Out,
        false => ContextSwitch::In,
    }
}
