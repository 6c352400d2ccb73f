//! Samples of a recording, decoded and resolved, and copies of its other records.

use rperf_replay::{
    CommId, Epoch, EventIndex, NonSampleRecord, Order, Render, Sample, ThreadCache, World,
};
use rperf_resolve::{AddressContext, CallFrame, Frame, Resolver, StackScratch, UserStacks, chain};
use rperf_wire::{Misc, RecordKind, SampleId, SampleType};

use crate::recent_frames::{ModeAddress, RecentFrames};
use crate::records::Event;
use crate::sample::OwnedFields;

/// Prepares the events that a session's Python callbacks receive: decodes and resolves samples, and copies the bytes of other
/// records.
pub(crate) struct EventRenderer<'r, 'w> {
    pub(crate) resolver: &'r Resolver<'w>,
    pub(crate) stacks: UserStacks<'r, 'w>,
    /// Maximum number of frames that are read from a callchain.
    pub(crate) max_stack: usize,
    /// By event of the recording ([`EventIndex`]): whether inlined functions are frames of callchains.
    pub(crate) inlines: Vec<bool>,
    /// Whether samples are wanted.
    pub(crate) samples: bool,
    /// Wanted types of records, other than samples.
    pub(crate) record_kinds: Vec<RecordKind>,
}

/// An event for a session's Python callbacks: any record.
pub(crate) enum RenderedEvent {
    /// A decoded sample.
    Sample(Box<DecodedSample>),
    /// Another record, not decoded.
    Record(RecordBytes),
}

/// A sample with its resolved addresses.
pub(crate) struct DecodedSample {
    /// The recording's event to which the sample belongs.
    pub(crate) index: EventIndex,
    /// The position by time among all records.
    pub(crate) order: Order,
    /// The attributes that all Python events have.
    pub(crate) event: Event,
    pub(crate) fields: OwnedFields,
    pub(crate) comm: CommId,
    pub(crate) ip: Option<Frame>,
    pub(crate) addr: Option<Frame>,
    /// The frames of the callchain, innermost first; `None` if not recorded, empty if damaged.
    pub(crate) chain: Option<Vec<Frame>>,
}

/// A copy of a record other than a sample.
pub(crate) struct RecordBytes {
    pub(crate) kind: RecordKind,
    pub(crate) misc: Misc,
    pub(crate) order: Order,
    /// The fields of the trailer.
    pub(crate) id: SampleId,
    /// Everything after the header, the trailer included.
    pub(crate) body: Box<[u8]>,
}

/// A worker's caches.
#[derive(Default)]
pub(crate) struct RenderScratch {
    threads: ThreadCache,
    unwinding: StackScratch,
    frames: RecentFrames,
}

impl EventRenderer<'_, '_> {
    /// The frames of a sample's callchain; `None` if none is recorded, no frames if it is damaged. `epoch` is the state of the
    /// mappings at the time of the sample.
    fn chain(
        &self,
        sample: &Sample<'_>,
        epoch: Epoch,
        scratch: &mut RenderScratch,
    ) -> Option<Vec<Frame>> {
        // With the user frames that were unwound; `None` if the recorded callchain needs no change.
        let completed = self.stacks.chain(sample, &mut scratch.unwinding);
        let callchain = completed.or(sample.wire.callchain)?;
        let at = AddressContext::of(sample);
        let mut frames = Vec::new();
        let is_valid = chain::walk(callchain, self.max_stack, |mode, ip| {
            let address = ModeAddress { mode, ip };
            frames.push(scratch.frames.locate(self.resolver, at, epoch, address));
        });
        if !is_valid {
            frames.clear();
        }
        let inlines = self.inlines.get(sample.event.0 as usize).copied();
        match inlines.unwrap_or_default() {
            true => Some(self.with_inlined(&frames)),
            false => Some(frames),
        }
    }

    /// The frames, with the frames of inlined functions.
    fn with_inlined(&self, frames: &[Frame]) -> Vec<Frame> {
        let mut calls: Vec<CallFrame<'_>> = Vec::new();
        for frame in frames {
            self.resolver.expand(frame, &mut calls);
        }
        calls.into_iter().map(|call| call.frame).collect()
    }
}

impl Render for EventRenderer<'_, '_> {
    type Out = Vec<RenderedEvent>;
    type Scratch = RenderScratch;

    fn reuse(&self, out: &mut Vec<RenderedEvent>) {
        out.clear();
    }

    fn fields(&self) -> SampleType {
        match self.samples {
            true => SampleType::ALL,
            false => SampleType::default(),
        }
    }

    fn reads(&self, _event: EventIndex) -> bool {
        self.samples
    }

    fn wanted(&self) -> &[RecordKind] {
        &self.record_kinds
    }

    fn record(
        &self,
        _world: &World,
        record: &NonSampleRecord<'_>,
        _scratch: &mut RenderScratch,
        out: &mut Vec<RenderedEvent>,
    ) {
        out.push(RenderedEvent::Record(RecordBytes {
            kind: record.raw.kind,
            misc: record.raw.misc,
            order: record.order,
            id: record.id,
            body: record.raw.body.into(),
        }));
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut RenderScratch,
        out: &mut Vec<RenderedEvent>,
    ) {
        // If any event has the modifier `S`, samples of all events are passed to this function, even if `reads` returns `false`.
        if !self.samples {
            return;
        }
        // The thread's name and the state of its mappings (`epoch`) at the time of the sample.
        let state = scratch.threads.state_at(world, sample.who(), sample.order);
        let at = AddressContext::of(sample);
        let mode = sample.cpu_mode();
        let wire = &sample.wire;
        let addr = wire.addr.filter(|addr| *addr != 0);
        out.push(RenderedEvent::Sample(Box::new(DecodedSample {
            index: sample.event,
            order: sample.order,
            event: Event::of_sample(wire, sample.misc.0, sample.period),
            fields: OwnedFields::of(wire),
            comm: state.comm_at,
            ip: wire.ip.map(|ip| {
                let address = ModeAddress { mode, ip };
                scratch
                    .frames
                    .locate(self.resolver, at, state.epoch, address)
            }),
            addr: addr.map(|addr| self.resolver.locate_data(at, mode, addr)),
            chain: self.chain(sample, state.epoch, scratch),
        })));
    }
}
