//! Parallel rendering of blocks of records: samples, and other records among them.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use rperf_wire::{Endian, RawRecord, RecordKind, SampleType};

use crate::deferred::DeferredCallchains;
use crate::diagnostics::DecodeErrors;
use crate::events::EventTable;
use crate::group_samples::GroupSamples;
use crate::prefetch::fetch;
use crate::threads::locked;
use crate::{BadRecord, FoldControl, Order, Render, Sample, Take, World};

/// Access to samples and other records of a file or a stream by their position.
pub(crate) trait OrderedSamples: Sync {
    /// The processes and mappings that the samples refer to. For a stream, the World grows with each batch of ready samples.
    fn world(&self) -> &World;

    /// Returns the bytes of the recording from a position on.
    fn bytes_from(&self, position: u64) -> &[u8];

    /// The events, with which records are decoded.
    fn events(&self) -> &EventTable;

    /// The shares of samples that belong to several events (`:S`): for each event, the period of its own derived sample.
    fn group_samples(&self) -> &GroupSamples;

    /// The user callchains that were recorded after their samples.
    fn deferred(&self) -> &DeferredCallchains;

    /// Calls `each` with `sample`, or with the samples derived from it if it has shares; deferred callchains are completed.
    #[inline]
    fn deliver(&self, sample: &Sample<'_>, mut each: impl FnMut(&Sample<'_>)) {
        let bytes_at = |position| self.bytes_from(position);
        self.group_samples().deliver(sample, |sample| {
            self.deferred().complete(sample, bytes_at, &mut each);
        });
    }

    /// The samples that could not be decoded.
    fn bad_samples(&self) -> MutexGuard<'_, DecodeErrors>;
}

/// A block for a worker, as the times and positions of its records, and the channel for its output.
struct RenderJob<Out> {
    block: Vec<Order>,
    reply: SyncSender<Out>,
}

/// State shared by workers and the feeding thread.
struct RenderQueue<Out> {
    jobs: Mutex<Receiver<RenderJob<Out>>>,
    /// Cleared outputs for reuse.
    spare: Mutex<Vec<Out>>,
}

/// Blocks in flight per worker: enough to keep it busy, few enough to limit memory.
const BLOCKS_PER_WORKER: usize = 4;

/// Renders the blocks until they end or `take` stops, with at most one worker per [`Render::Scratch`] in `scratches`. The
/// calling thread passes the outputs to `take` in the order of the blocks. With one scratch, the calling thread also renders;
/// without a scratch, nothing is rendered.
///
/// # Panics
/// With the payload of the first worker that panics.
pub(crate) fn render_blocks<S: OrderedSamples, R: Render, T: Take<R::Out>>(
    recorded: &S,
    mut blocks: impl Iterator<Item = Vec<Order>>,
    render: &R,
    scratches: &mut [R::Scratch],
    take: &mut T,
) {
    let Some((first, others)) = scratches.split_first_mut() else {
        return;
    };
    let renderer = &BlockRenderer::new(recorded, render);
    if others.is_empty() {
        return renderer.render_alone(blocks, first, take);
    }
    let (jobs, queue) = channel();
    let shared = RenderQueue {
        jobs: Mutex::new(queue),
        spare: Mutex::default(),
    };
    let shared = &shared;
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(others.len() + 1);
        // Returns the number of workers so far.
        let mut start = |scratch| {
            let work = move || renderer.work(scratch, shared);
            // If a thread cannot be started, the other workers process its blocks.
            workers.extend(thread::Builder::new().spawn_scoped(scope, work));
            workers.len()
        };
        let started = others.iter_mut().map(&mut start).last();
        if started.unwrap_or_default() == 0 {
            return renderer.render_alone(blocks, first, take);
        }
        // The calling thread does not render, so the first scratch is for one more worker.
        start(first);
        let feeder = Feeder {
            jobs,
            look_ahead: BLOCKS_PER_WORKER * workers.len(),
            spare: &shared.spare,
        };
        feeder.feed(&mut blocks, render, take);
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// Number of bytes of a record to prefetch: usually the whole record.
const PREFETCHED_PER_RECORD: usize = 128;

/// Sends blocks to workers and receives their outputs. Dropping it ends the workers.
struct Feeder<'s, Out> {
    jobs: Sender<RenderJob<Out>>,
    /// Maximum number of blocks in flight.
    look_ahead: usize,
    spare: &'s Mutex<Vec<Out>>,
}

impl<Out> Feeder<'_, Out> {
    /// Passes the outputs of all blocks to `take`, in order, until it stops or a worker panics.
    fn feed<R: Render<Out = Out>, T: Take<Out>>(
        self,
        blocks: &mut impl Iterator<Item = Vec<Order>>,
        render: &R,
        take: &mut T,
    ) {
        let mut in_flight: VecDeque<Receiver<Out>> = VecDeque::new();
        loop {
            while in_flight.len() < self.look_ahead {
                let Some(block) = blocks.next() else { break };
                let (reply, output) = sync_channel(1);
                if self.jobs.send(RenderJob { block, reply }).is_err() {
                    return;
                }
                in_flight.push_back(output);
            }
            // Ends after the last block, or if a worker panicked and dropped its channel; `render_blocks` resumes the panic
            // when it joins the worker.
            let Some(Ok(mut out)) = in_flight.pop_front().map(|output| output.recv()) else {
                return;
            };
            if take.take(&mut out) == FoldControl::Stop {
                return;
            }
            render.reuse(&mut out);
            locked(self.spare).push(out);
        }
    }
}

/// Data that workers share to render blocks.
struct BlockRenderer<'s, S, R> {
    recorded: &'s S,
    render: &'s R,
    /// The events, limited to the fields of samples that are needed.
    events: EventTable,
}

impl<'s, S: OrderedSamples, R: Render> BlockRenderer<'s, S, R> {
    fn new(recorded: &'s S, render: &'s R) -> Self {
        let mut fields = render.fields();
        // Only the callchain of a sample tells whether its user part was deferred.
        if recorded.deferred().are_awaited() {
            fields |= SampleType::CALLCHAIN;
        }
        Self {
            recorded,
            render,
            events: recorded.events().reading(fields),
        }
    }

    /// Renders without workers.
    fn render_alone<T: Take<R::Out>>(
        &self,
        blocks: impl Iterator<Item = Vec<Order>>,
        scratch: &mut R::Scratch,
        take: &mut T,
    ) {
        let mut out = R::Out::default();
        for block in blocks {
            self.render_block(&block, scratch, &mut out);
            if take.take(&mut out) == FoldControl::Stop {
                break;
            }
            self.render.reuse(&mut out);
        }
    }

    fn work(&self, scratch: &mut R::Scratch, shared: &RenderQueue<R::Out>) {
        loop {
            let job = locked(&shared.jobs).recv();
            let Ok(RenderJob { block, reply }) = job else {
                return;
            };
            let spare = locked(&shared.spare).pop();
            let mut out = spare.unwrap_or_default();
            self.render_block(&block, scratch, &mut out);
            // Fails if the consumer has stopped; the output is then not needed.
            let _sent = reply.send(out);
        }
    }

    fn render_block(&self, block: &[Order], scratch: &mut R::Scratch, out: &mut R::Out) {
        // One copy of the loop for each byte order.
        match self.events.endian() {
            Endian::Little => self.render_in(Endian::Little, block, scratch, out),
            Endian::Big => self.render_in(Endian::Big, block, scratch, out),
        }
    }

    #[inline(always)]
    fn render_in(
        &self,
        endian: Endian,
        block: &[Order],
        scratch: &mut R::Scratch,
        out: &mut R::Out,
    ) {
        let mut bad = DecodeErrors::default();
        let mut sample = Sample::default();
        let (recorded, render, events) = (self.recorded, self.render, &self.events);
        let world = recorded.world();
        // Prefetches all records of the block, so that the cache misses overlap; they are decoded one by one below.
        for order in block {
            let bytes = recorded.bytes_from(order.position);
            fetch(bytes.get(..PREFETCHED_PER_RECORD).unwrap_or(bytes));
        }
        for order in block {
            let bytes = recorded.bytes_from(order.position);
            let Some((raw, _)) = RawRecord::split(bytes, endian) else {
                continue;
            };
            if raw.kind != RecordKind::SAMPLE {
                render.record(world, &events.non_sample(raw, *order), scratch, out);
                continue;
            }
            // The position and time are known, so the time in the sample (`_`) is not needed.
            match events.sample_into(&raw, endian, |_| *order, &mut sample) {
                Ok(true) => recorded.deliver(&sample, |sample| {
                    render.render(world, sample, scratch, out);
                }),
                // The event is unknown.
                Ok(false) => {}
                Err(error) => bad.add(BadRecord {
                    offset: order.position,
                    kind: raw.kind,
                    error,
                }),
            }
        }
        if bad.count > 0 {
            recorded.bad_samples().merge(bad);
        }
    }
}
